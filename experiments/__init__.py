"""How this project proves its numbers.

Claims and their ledger, protocols and figures of the papers, runs of other libraries, shipping of
agents.

The package ``lightning_rl`` knows nothing of it but its door in ``lightning_rl/cli/tools.py``.
"""

EVIDENCE_OF = "lightning_rl"
"""Says that this is no other package of that name."""
