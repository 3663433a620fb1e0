"""A world of its own for a test: process ids, mounts, network and System V objects that end with it.

The caller waits outside. Inside, process 1 collects the dead, and the test goes on as process 2. When any of the
three ends, in whichever way, the others end too, and with the last process the kernel removes the networks and mounts.
So there is nothing to clean up, and nothing is left behind.

    caller (outside) <-- its death kills -- process 1 <-- its death kills -- the test, hosts, daemons, ranks
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import unittest

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = (
    0x00020000, 0x04000000, 0x08000000, 0x20000000, 0x40000000)
PR_SET_PDEATHSIG = 1

# The exit status that ctest takes for a skip.
SKIPPED = 77

# A folder that all hosts share, as they would a file server's.
SHARED = "/srv"

SETUP = f"mount --make-rprivate / && mount -t proc proc /proc && mount -t tmpfs srv {SHARED} && ip link set lo up"


class Missing(unittest.SkipTest):
    """Names a thing that this machine does not have, and the remedy. The test is skipped."""


def need(*commands, install="scripts/setup cluster"):
    """Skips unless these commands are there."""
    missing = [command for command in commands if shutil.which(command, path=search_path()) is None]
    if missing:
        raise Missing(f"no {', '.join(missing)} here: {install}")


def search_path():
    """Where commands are: daemons and network tools are not on every user's PATH."""
    return os.environ["PATH"] + ":/usr/local/sbin:/usr/sbin:/sbin"


def enter():
    """Puts this process into a world of its own; only the process inside returns."""
    if os.geteuid() != 0:
        raise Missing("namespaces, bridges and mounts are made by root")
    os.environ["PATH"] = search_path()
    need("ip", "mount", "nsenter", "unshare")

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET) != 0:
        raise Missing(f"no namespaces of one's own here: {os.strerror(ctypes.get_errno())}")
    _wait_outside_of_child()
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    _wait_outside_of_child()
    done = subprocess.run(["sh", "-c", SETUP], capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing(f"no mounts of one's own here: {done.stderr.strip()}")


def main():
    """Runs the tests of the calling script in a world of their own."""
    try:
        enter()
    except Missing as missing:
        print(f"skipped: {missing}")
        sys.exit(SKIPPED)
    result = unittest.main(testRunner=Runner, exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(0 if result.passed else SKIPPED)


class Result(unittest.TextTestResult):
    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


class Runner(unittest.TextTestRunner):
    resultclass = Result


def _wait_outside_of_child():
    """Forks. The child returns; its parent collects the dead until the child is among them, and ends as it did."""
    child = os.fork()
    if child == 0:
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    dead = None
    while dead != child:
        dead, status = os.wait()
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)
