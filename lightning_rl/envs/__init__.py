"""Environments; the only package that knows gymnasium."""
