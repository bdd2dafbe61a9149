"""``lightning-rl reproduce``: every claim of ``results/claims.yaml`` measured by its own commands, and the ledger of all of them.

``claims``: what the manifest may say. ``runs``: the commands of a claim with one seed, and what is read from them. ``store``: the
CSVs. ``ledger``: published beside measured, met or not. ``command``: which runs are missing, and where they run.
"""
