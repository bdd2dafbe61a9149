"""Mathematics: functions on arrays and tensors, without modules or configs; what is random takes
its generator, or a seed.
"""
