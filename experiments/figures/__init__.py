"""Figures that belong to single papers."""
