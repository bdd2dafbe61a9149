"""What everything stands on: types, configs, files, limits, randomness. It imports nothing else of the project."""
