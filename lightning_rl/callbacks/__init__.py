"""Lightning callbacks: checkpoints, interruption, progress, recordings."""
