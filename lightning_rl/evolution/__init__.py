"""Evolution strategies as gradient estimators, and where their populations are evaluated."""

from lightning_rl.evolution import variants as variants  # which makes its strategies known
