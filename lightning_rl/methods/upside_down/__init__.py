"""Upside-down RL: UDRL (Srivastava et al. 2019, arXiv 1912.02877), RCP-R and RCP-A
(Reward-Conditioned Policies, Kumar, Peng and Levine 2019, arXiv 1912.13465), and what lies between.

Begin with ``method``, which says how an epoch goes. Its parts are in ``commands``, ``weightings``
and ``targets``, those that need a critic in ``critic``; ``rollouts`` is the data.
"""

from lightning_rl.methods.upside_down.method import RCPA, RCPR, UDRL, UpsideDown

__all__ = ["RCPA", "RCPR", "UDRL", "UpsideDown"]
