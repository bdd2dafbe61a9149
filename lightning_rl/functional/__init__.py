"""Mathematics: functions on arrays and tensors, without modules or configs.

What is random takes its generator, or a seed.
"""
