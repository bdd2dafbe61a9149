"""The mutations that ``mutants.py`` makes: wrong formulas, each of which a test of its area has to notice.

A file for each part of the package.
"""

from mutations import (
    agents,
    core,
    envs,
    evolution,
    experiments,
    functional,
    lab,
    methods,
    nets,
    rollouts,
    run,
)
from mutations.mutation import Mutation

__all__ = ["MUTATIONS", "Mutation"]

PARTS = (core, functional, nets, envs, rollouts, agents, evolution, methods, run, lab, experiments)
MUTATIONS: list[Mutation] = [mutation for part in PARTS for mutation in part.MUTATIONS]
"""All of them; those of one area stand together."""
