"""Pareto-conditioned networks (PCN, Reymond et al. 2022, arXiv 2204.05036): a policy that is asked
for a return of each of several objectives.

Begin with ``method``, which says how an epoch goes; its parts are ``command``, ``buffer`` and
``target``; ``rollouts`` is the data.
"""

from lightning_rl.methods.pareto.method import PCN

__all__ = ["PCN"]
