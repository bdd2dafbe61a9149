"""Hyper-parameter search with Ray Tune: the space, one trial, the search over trials, and what
came of it.
"""
