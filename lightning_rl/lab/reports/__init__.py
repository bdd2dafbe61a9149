"""Runs side by side: a list of them, a comparison of two methods, a page to hand on."""
