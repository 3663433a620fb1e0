"""A cluster for tests, made of namespaces: hosts, their network, and the launchers that start programs on them."""

import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[1]
PROJECT = FOLDER.parents[1]

# What the tests of one host have is of use here too: harness.jobs.
sys.path.append(str(PROJECT / "tests" / "system"))
