"""Evolution strategies as gradient estimators, and where their populations are evaluated."""
