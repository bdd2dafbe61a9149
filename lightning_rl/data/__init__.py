"""Episodes: how they are played, carried between processes and kept."""
