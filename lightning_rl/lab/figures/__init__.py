"""Figures from run directories; each writes a picture and the CSV of exactly what it shows."""
