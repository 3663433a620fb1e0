"""Far memory in tests: which users can have it, of which kind, and jobs that use it."""

import contextlib
import json
import os
import re
import subprocess
import unittest

from harness.jobs import PROGRAMS, TONARI, JobTest, eventually, processes_marked

NOBODY = 65534
SOAK = int(os.environ.get("TONARI_SOAK", "1"))
TORTURE = os.path.join(PROGRAMS, "far_torture")
SAID = re.compile(r"^tonari far: the kernel reports no faults of system calls .*vm.unprivileged_userfaultfd=1.*\n")


ADVISED = re.compile(r"^tonari far: the program's working set does not fit into --local .*\n", re.MULTILINE)


def faults_told(user=None):
    """Returns which of the user's faults userfaultfd reports: "all", "programs" (none of system calls), or None."""
    try:
        probe = subprocess.run([TONARI, "info", "--json"], capture_output=True, text=True, check=True, user=user)
    except PermissionError as error:
        raise unittest.SkipTest(f"another user may not read this build: {error}") from error
    features = {feature["name"]: feature for feature in json.loads(probe.stdout)["features"]}
    if not features["page moves"]["works"]:
        return None
    faults = features["userfaultfd"]
    if faults["works"]:
        return "all"
    if "only faults of programs" in faults["text"]:
        return "programs"
    if "no far memory" in faults["text"]:
        return None
    raise AssertionError(f"`tonari info` says something new of userfaultfd: {faults}")


def need_faults(user=None):
    """Skips the test if the kernel does not let this user have far memory."""
    if user is not None and os.geteuid() != 0:
        raise unittest.SkipTest("only root can become another user")
    if faults_told(user) is None:
        raise unittest.SkipTest("the kernel reports no faults here, or moves no pages: see tonari info")


def without_notice(error):
    """Returns the messages without the notices that the kernel reports no faults of system calls, and that --local is
    too small, which depends on the machine's speed."""
    return ADVISED.sub("", SAID.sub("", error, count=1), count=1)


@contextlib.contextmanager
def memory_group(limit_bytes):
    """Makes a control group whose processes may use `limit_bytes` of memory, without swap. Gives a function that moves
    the calling process into the group. Skips the test if groups cannot be made here."""
    for parent, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        if os.path.exists(os.path.join(parent, "cgroup.procs")):
            break
    group = os.path.join(parent, f"tonari-test-{os.getpid()}")
    try:
        os.mkdir(group)
        with open(os.path.join(group, limit), "w") as file:
            file.write(str(limit_bytes))
    except OSError as error:
        raise unittest.SkipTest(f"no control group can be made here: {error}") from error

    def enter():
        with open(os.path.join(group, "cgroup.procs"), "w") as file:
            file.write("0")

    try:
        yield enter
    finally:
        eventually(lambda: try_to_remove(group), f"{group} is empty")


def try_to_remove(group):
    try:
        os.rmdir(group)
    except OSError:  # processes that have just ended are still in it
        return False
    return True


class FarTest(JobTest):
    def setUp(self):
        need_faults(self.user)
        super().setUp()

    def run_job(self, *arguments, **options):
        status, output, error = super().run_job(*arguments, **options)
        return status, output, without_notice(error)

    def torture(self, *options, seed=1, threads=4, rounds=60 * SOAK, mib=96):
        """Runs far_torture to its end and returns its statistics of far memory."""
        status, output, error = self.run_job("far", "--stats=json", *options, "--", TORTURE, seed, threads, rounds, mib)
        self.assertEqual((status, output), (0, "ok\n"), error)
        return json.loads(error)

    def start_torture(self, *options, seed=1, **others):
        job = self.start("far", *options, "--", TORTURE, seed, 2, 0, 64, "wait", stdin=subprocess.PIPE, **others)
        job.output.wait_for("ready")
        return job

    def server_of(self, job, rank):
        """Returns the process id of this rank of the servers' job."""
        for pid in processes_marked(job.mark):
            with open(f"/proc/{pid}/environ") as file, open(f"/proc/{pid}/cmdline") as command:
                if f"TONARI_RANK={rank}\0" in file.read() and "\0serve\0" in command.read():
                    return pid
        self.fail(f"no server {rank}")
