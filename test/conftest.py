"""Settings of the whole suite: Hypothesis runs few cases by default and many where HYPOTHESIS_PROFILE is ci."""

import os

from hypothesis import settings

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=500, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

pytest_plugins = [
    "support.virtualtime",
    "support.realcluster",
    "support.managers",
    "support.workplace",
    "support.figures",
    "pytester",
]
