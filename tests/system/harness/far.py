"""Who may have far memory, and of which kind."""

import json
import os
import re
import subprocess
import unittest

from harness.jobs import TONARI

NOBODY = 65534
SAID = re.compile(r"^tonari far: the kernel tells .*vm.unprivileged_userfaultfd=1.*\n")


def faults_told(user=None):
    """Of what the kernel tells the user's faults: "all", "programs" (not their system calls), or nothing."""
    try:
        probe = subprocess.run([TONARI, "info", "--json"], capture_output=True, text=True, check=True, user=user)
    except PermissionError as error:
        raise unittest.SkipTest(f"another user may not read this build: {error}") from error
    features = {feature["name"]: feature for feature in json.loads(probe.stdout)["features"]}
    if not features["page moves"]["works"]:
        return None
    if features["userfaultfd"]["works"]:
        return "all"
    return "programs" if json.dumps(features["userfaultfd"]).find("faults of programs alone") >= 0 else None


def need_faults(user=None):
    """Skips what needs far memory, of that user, where the kernel does not let him."""
    if user is not None and os.geteuid() != 0:
        raise unittest.SkipTest("only root can become another user")
    if faults_told(user) is None:
        raise unittest.SkipTest("the kernel tells no faults here, or moves no pages: see tonari info")


def without_notice(error):
    """What was said, but for the notice that system calls do not fault."""
    return SAID.sub("", error, count=1)
