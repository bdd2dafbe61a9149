"""What all other packages use: types, configs, files, limits, randomness. It imports nothing
else of the project.
"""
