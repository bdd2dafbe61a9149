"""``lightning-rl reproduce``: every claim of ``results/claims.yaml`` measured by its own commands,
and the ledger of all of them.

``claims``: what the manifest may say. ``runs``: the commands of a claim with one seed, and what is
read from them. ``store``: the CSVs. ``checkout``: the commit they are of. ``ledger``: published
beside measured, met or not. ``command``: what is missing, and where it is run.
"""
