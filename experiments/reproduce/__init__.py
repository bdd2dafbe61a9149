"""``lightning-rl reproduce``: each claim of ``results/claims.yaml`` is measured by its commands.

``claims``: what the manifest may say. ``runs``: the commands of a claim with one seed, and what is
read from them. ``store``: the CSVs. ``checkout``: the commit they are of. ``ledger``: published
beside measured, met or not. ``command``: what is missing, and where it is run.
"""
