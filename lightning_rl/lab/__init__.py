"""What one does with runs: evaluations, figures, reports, searches."""
