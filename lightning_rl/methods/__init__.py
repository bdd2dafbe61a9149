"""One family file per method family: the LightningModule, its Config and the order of the
algorithm.
"""
