"""Starts `tonari` commands for tests, and checks that they leave nothing behind."""

import glob
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
import uuid

BIN = os.environ.get("TONARI_BIN", "")
PROGRAMS = os.environ.get("TONARI_TEST_BIN", "")
TONARI = os.path.join(BIN, "tonari")
ACTOR = os.path.join(PROGRAMS, "job_actor")
# The presets with sanitizers build no benchmarks.
HAS_BENCHMARKS = os.access(os.path.join(BIN, "..", "libexec", "tonari", "bench"), os.X_OK)
MARK = "JOB_TEST_MARK"
SOAK = int(os.environ.get("TONARI_SOAK", "1"))

# Seconds that a step may take on a busy machine. On an idle one, it takes almost no time.
PATIENCE = 120.0


def seeds(usual):
    """Returns the seeds of a random test: TONARI_SEED alone if it is set, otherwise new ones in each run."""
    if "TONARI_SEED" in os.environ:
        return [int(os.environ["TONARI_SEED"])]
    return [random.randrange(1 << 31) for _ in range(usual * SOAK)]


def eventually(condition, what, seconds=PATIENCE):
    """Calls `condition` until its result is true, and returns the result."""
    end = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.01)


def has_sanitizer(program):
    """Returns whether a program was built with AddressSanitizer or ThreadSanitizer."""
    with open(program, "rb") as file:
        text = file.read()
    return b"__asan_init" in text or b"__tsan_init" in text


def processes_marked(mark):
    """Returns the processes that have the mark in their environment: all descendants of a job."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    found.append(int(entry))
        except OSError:
            pass
    return found


def files_of_tonari():
    return sorted(
        os.path.join(folder, name)
        for folder in ("/dev/shm", "/tmp")
        for name in (os.listdir(folder) if os.path.isdir(folder) else [])
        if "tonari" in name and not os.path.isdir(os.path.join(folder, name))
    )


def state_of(pid):
    """Returns the state as ps shows it: R, S, T or Z; None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return None


class Lines:
    """Reads a pipe line by line."""

    def __init__(self, pipe):
        self.seen = []
        self._queue = queue.Queue()
        self._thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._thread.start()

    def _read(self, pipe):
        for line in pipe:
            self._queue.put(line)
        pipe.close()
        self._queue.put(None)

    def _next(self, seconds):
        line = self._queue.get(timeout=seconds)
        if line is not None:
            self.seen.append(line)
        return line

    def wait_for(self, pattern, count=1):
        """Reads until `count` lines have matched in all; returns the last match."""
        end = time.monotonic() + PATIENCE
        matches = [m for m in (re.search(pattern, line) for line in self.seen) if m]
        while len(matches) < count:
            try:
                line = self._next(max(0.0, end - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                raise AssertionError(f"{count} lines like {pattern!r} wanted, got {self.seen}")
            match = re.search(pattern, line)
            if match:
                matches.append(match)
        return matches[count - 1]

    def rest(self):
        while self._next(PATIENCE) is not None:
            pass
        return "".join(self.seen)


def where_threads_wait(mark):
    """Describes each thread of the processes with the mark: what it does, and where in the kernel it sleeps."""
    def read(path):
        try:
            with open(path) as file:
                return file.read().replace("\0", " ").strip()
        except OSError:
            return "?"

    lines = []
    for pid in sorted(processes_marked(mark)):
        lines.append(f"process {pid}: {read(f'/proc/{pid}/cmdline')}")
        for thread in sorted(glob.glob(f"/proc/{pid}/task/*")):
            state = read(f"{thread}/stat").rpartition(")")[2].split()[:1]
            stack = [line.partition("] ")[2].partition("+")[0] for line in read(f"{thread}/stack").splitlines()]
            lines.append(f"  {os.path.basename(thread)} {read(f'{thread}/comm')} {' '.join(state)} "
                         f"in call {read(f'{thread}/syscall').partition(' ')[0]}: {' < '.join(stack)}")
    return "\n".join(lines)


class Job:
    """A running `tonari` command."""

    def __init__(self, command, mark, **options):
        self.mark = mark
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        self.process = subprocess.Popen(command, text=True, bufsize=1, **options)
        self.pid = self.process.pid
        self.output = Lines(self.process.stdout) if self.process.stdout else None
        self.error = Lines(self.process.stderr)

    def pid_of(self, rank):
        """Returns the process id of a rank whose program prints "RANK is PID"."""
        return int(self.output.wait_for(rf"^{rank} is (\d+)$").group(1))

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        """Waits for the end; returns the exit status, the output and the error output."""
        try:
            status = self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"{late}; its threads wait here:\n{where_threads_wait(self.mark)}") from late
        return status, self.output.rest(), self.error.rest()


def asan_options(*more):
    """Returns AddressSanitizer's options, with more added to the present ones."""
    return ":".join(filter(None, (os.environ.get("ASAN_OPTIONS"), *more)))


class JobTest(unittest.TestCase):
    """A test whose jobs leave no process, socket or file behind."""

    maxDiff = None

    def setUp(self):
        self._mark = uuid.uuid4().hex
        self._files = files_of_tonari()
        self._jobs = []
        self.addCleanup(self._check_nothing_left)

    within = ()  # command that starts `tonari`
    user = None  # user id that runs it; None: the tests' own

    def environment(self, **variables):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TONARI_")}
        return {**kept, MARK: self._mark, **variables}

    def start(self, *arguments, command=(TONARI,), env=None, stdin=subprocess.DEVNULL, **options):
        """Starts `tonari`, or another command that becomes `tonari`."""
        if self.user is not None:
            folder = tempfile.mkdtemp(prefix="user-")
            self.addCleanup(shutil.rmtree, folder)
            os.chown(folder, self.user, self.user)
            options = {"user": self.user, "group": self.user, "extra_groups": [], "cwd": folder, **options}
            env = {**(env or self.environment()), "TMPDIR": folder, "HOME": folder}
        job = Job([*self.within, *command, *map(str, arguments)], self._mark, env=env or self.environment(), stdin=stdin,
                  **options)
        self._jobs.append(job)
        return job

    def run_job(self, *arguments, **options):
        """Runs `tonari` to its end; returns the exit status, the output and the error output."""
        return self.start(*arguments, **options).end()

    def actors(self, ranks, *words, options=(), **others):
        """Runs job_actor to its end on `ranks` ranks."""
        return self.run_job("run", "-n", ranks, *options, ACTOR, *words, **others)

    def start_actors(self, ranks, *words, options=(), **others):
        return self.start("run", "-n", ranks, *options, ACTOR, *words, **others)

    def phases(self, job):
        """Returns the phase of each rank, as `tonari status` shows it."""
        shown = subprocess.run([TONARI, "status", str(job.pid)], capture_output=True, text=True, timeout=PATIENCE)
        rows = [line.split() for line in shown.stdout.splitlines()[2:]]
        return [row[2] for row in rows if row and row[0].isdigit()]

    def await_phase(self, job, rank, phase):
        eventually(lambda: dict(enumerate(self.phases(job))).get(rank) == phase, f"rank {rank} is {phase}")

    def _check_nothing_left(self):
        for job in self._jobs:
            if job.process.poll() is None:
                job.process.kill()
                job.process.wait()
        try:
            eventually(lambda: not processes_marked(self._mark), "all processes are gone", 10)
        finally:
            for pid in processes_marked(self._mark):
                os.kill(pid, signal.SIGKILL)
        with open("/proc/net/unix") as sockets:
            names = {line.split()[-1] for line in sockets}
        for job in self._jobs:
            self.assertNotIn(f"@tonari-run-{job.pid}", names)
        self.assertEqual(sorted(set(files_of_tonari()) - set(self._files)), [])
