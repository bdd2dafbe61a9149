"""Learners: each object holds N members, trained in lock-step as stacked tensors.

No Lightning here.
"""
