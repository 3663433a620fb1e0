"""A cluster for tests, made of namespaces: hosts, their network, and the launchers that start programs on them."""

import os
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[1]
PROJECT = FOLDER.parents[1]

# Where scripts/setup puts what is not among the distribution's packages.
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tonari")

# The cluster's tests use harness.jobs of the system tests too.
sys.path.append(str(PROJECT / "tests" / "system"))
