"""Episodes: how they are played, collected in worker processes, and kept."""
