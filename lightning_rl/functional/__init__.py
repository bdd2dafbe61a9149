"""Mathematics: pure functions on arrays and tensors, without modules, configs or random state."""
