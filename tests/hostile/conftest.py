"""Budgets of the fuzz tests: a few examples in the suite, always the same; thousands of new ones
with FUZZ=long (make fuzz).
"""

import os

from hypothesis import HealthCheck, Phase, settings

_ALWAYS = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "database": None,
    "print_blob": True,
}
settings.register_profile("default", max_examples=40, derandomize=True, **_ALWAYS)
settings.register_profile(
    "long", max_examples=1000, derandomize=False, phases=(Phase.explicit, Phase.generate), **_ALWAYS
)
settings.load_profile(os.environ.get("FUZZ", "default"))
