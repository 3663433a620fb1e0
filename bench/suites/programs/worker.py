"""Runs one program of catalog.py for `tonari bench programs`, and measures its time and memory.

The driver starts this worker like its others, and reads the same kind of results (bench/harness/worker.hpp). The worker
starts the program behind the words of --before: nothing, `tonari far`, or a shell that enters a memory cgroup. So it
sees the program and all that belongs to it, and is not limited itself.
"""

import argparse
import ctypes
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from catalog import CATALOG

SAMPLE_S = 0.02
STOP_S = 2  # less than the driver gives this worker (seconds_to_stop in child.cpp)


class Output:
    """Writes results, one JSON object per line."""

    def __init__(self, options):
        self._options = options

    def line(self, **said):
        with open(self._options.output, "a") as file:
            file.write(json.dumps(said) + "\n")

    def sample(self, metric, unit, value):
        self.line(series=self._name(metric, unit), at=self._options.local, samples=[value])

    def check(self, metric, value):
        """Writes a value that must be 0."""
        self.line(check=self._name(metric, "1"), at=self._options.local, value=value, bound=0.5)

    def _name(self, metric, unit):
        return {"case": self._options.program, "metric": metric, "unit": unit, "x": "local %"}


def with_descendants(process):
    """Returns the numbers of a process and of its descendants. Only children of each main thread are found."""
    found = [process]
    for number in found:
        try:
            with open(f"/proc/{number}/task/{number}/children") as file:
                found += map(int, file.read().split())
        except OSError:
            pass  # it has ended
    return found


def shares_pages(number):
    """Returns whether a process was forked and has executed nothing yet, so that its pages are its parent's."""
    fork_without_exec = 0x40  # PF_FORKNOEXEC
    with open(f"/proc/{number}/stat") as file:
        flags = file.read().rpartition(")")[2].split()[6]
    return int(flags) & fork_without_exec != 0


def anonymous_bytes(processes):
    total = 0
    for number in processes:
        try:
            if shares_pages(number):
                continue
            with open(f"/proc/{number}/status") as file:
                text = file.read()
        except OSError:
            continue  # it has ended
        _, found, rest = text.partition("RssAnon:")  # a process that is ending has none
        total += int(rest.split(None, 1)[0]) << 10 if found else 0
    return total


def kills_in(cgroup):
    """Returns how many processes of a memory cgroup the kernel has killed for lack of memory."""
    for name in ("memory.events", "memory.oom_control"):  # version 2, version 1
        path = os.path.join(cgroup, name)
        if os.path.exists(path):
            with open(path) as file:
                return int(dict(line.split() for line in file).get("oom_kill", 0))
    return 0


class Run:
    """One run of a program: its time, peak memory, exit status, and a hash of its output."""

    def __init__(self, program, words, folder, inputs, time_limit_s):
        self._program = program
        self._folder = folder
        self._requests = os.path.join(inputs, "requests")
        self._digest = hashlib.sha256()
        self._output_bytes = 0
        self.peak_bytes = 0
        self.is_late = False
        self.errors = tempfile.TemporaryFile(dir=folder)
        self._started = time.monotonic()
        self._process = subprocess.Popen(
            words, cwd=folder, env={**os.environ, "LC_ALL": "C"}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=self.errors,
        )  # fmt: skip
        try:
            self._watch(self._started + time_limit_s)
        finally:
            self._stop()
        code = self._process.returncode
        self.status = code if code >= 0 else 128 - code

    def digest(self):
        """Returns the hash of its output, or of a server's replies, and of the files that it wrote, and their bytes."""
        for name in self._program.results:
            path = os.path.join(self._folder, name)
            names = [os.path.join(name, each) for each in sorted(os.listdir(path))] if os.path.isdir(path) else [name]
            for each in names:
                with open(os.path.join(self._folder, each), "rb") as file:
                    contents = file.read()
                self._digest.update(f"{each} {len(contents)}\n".encode())
                self._take(contents)
        return self._digest.hexdigest(), self._output_bytes

    def _take(self, part):
        self._digest.update(part)
        self._output_bytes += len(part)

    def _watch(self, end):
        """Waits for the end of the program, and notes the most memory that it and its processes have at a time."""
        reader = threading.Thread(target=self._read_output, daemon=True)
        reader.start()
        if self._program.is_server:
            threading.Thread(target=self._ask, daemon=True).start()
        while self._process.poll() is None and not self.is_late:
            self.peak_bytes = max(self.peak_bytes, anonymous_bytes(with_descendants(self._process.pid)))
            self.is_late = time.monotonic() > end
            try:
                self._process.wait(SAMPLE_S)
            except subprocess.TimeoutExpired:
                pass
        reader.join(max(0, end - time.monotonic()))
        self.is_late = self.is_late or reader.is_alive()  # a process that the program left behind may still write
        self.time_s = time.monotonic() - self._started

    def _stop(self):
        """Ends the program if it still runs, and all processes that it leaves behind."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for number in with_descendants(os.getpid())[1:]:
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def _read_output(self):
        while part := self._process.stdout.read1(1 << 20):
            if not self._program.is_server:  # its log is different each time
                self._take(part)

    def _ask(self):
        """Sends the requests to the server, reads all replies, and ends it."""
        folder = os.open(self._folder, os.O_PATH)
        path = f"/proc/self/fd/{folder}/socket"  # short: the address of a socket has at most 107 bytes
        with socket.socket(socket.AF_UNIX) as connection:
            while self._process.poll() is None and connection.connect_ex(path) != 0:
                time.sleep(0.005)
            os.close(folder)
            threading.Thread(target=self._send, args=(connection,), daemon=True).start()
            try:
                while part := connection.recv(1 << 20):
                    self._take(part)
            except OSError:
                pass  # the server died, which its exit status says
        self._process.terminate()

    def _send(self, connection):
        try:
            with open(self._requests, "rb") as requests:
                connection.sendfile(requests)
        except OSError:
            pass


def make_inputs(program, folder):
    """Makes the inputs of a program, once for all its runs, and returns their folder."""
    if program.make and not os.path.exists(folder):
        unfinished = folder + ".new"
        os.makedirs(unfinished)
        before = os.getcwd()
        os.chdir(unfinished)
        program.make()
        os.chdir(before)
        os.rename(unfinished, folder)
    return folder


def tell(run, options, output):
    """Writes the results of a run that ended by itself, or that was too slow."""
    output.sample("memory", "MiB", run.peak_bytes / (1 << 20))
    if run.is_late:
        output.sample("late", "s", options.time_limit_s)
        return
    if run.status != 0 and options.cgroup and kills_in(options.cgroup) > 0:
        output.sample("killed", "1", 1)
        return
    output.check("failed", run.status)
    if run.status != 0:
        run.errors.seek(0)
        sys.stderr.write(run.errors.read().decode(errors="replace"))
        return
    digest, output_bytes = run.digest()
    is_short = output_bytes < CATALOG[options.program].output_bytes_min
    output.check("short", int(is_short))
    if is_short:
        return
    output.check("differs", int(options.expect not in (None, digest)))
    output.line(parameter={"digest": digest})
    output.sample("time", "s", run.time_s)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", choices=CATALOG)
    parser.add_argument("--output", required=True)
    parser.add_argument("--system", required=True)
    parser.add_argument("--local", type=int, required=True, help="only written to the results")
    parser.add_argument("--inputs", required=True, help="the folder for inputs and results")
    parser.add_argument("--time-limit-s", type=float, required=True)
    parser.add_argument("--expect", help="the digest of the local run")
    parser.add_argument("--cgroup", help="the memory cgroup that the words of --before enter")
    parser.add_argument("--before", type=json.loads, default=[], help="words before the command, as a JSON array")
    return parser.parse_args()


def adopt_orphans():
    """Makes this process the parent of processes whose parent ends, so that it can end them."""
    set_child_subreaper = 36  # PR_SET_CHILD_SUBREAPER
    ctypes.CDLL(None).prctl(set_child_subreaper, 1)


def work(program, command, options, output):
    inputs = make_inputs(program, os.path.join(options.inputs, options.program))
    words = options.before + [word.replace("{inputs}", inputs) for word in command]
    with tempfile.TemporaryDirectory(dir=options.inputs) as folder:
        tell(Run(program, words, folder, inputs, options.time_limit_s), options, output)


def main():
    adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    options = parse_options()
    output = Output(options)
    output.line(system=options.system)
    program = CATALOG[options.program]
    command = program.command()
    if command is None:
        output.sample("missing", "1", 1)
    else:
        try:
            work(program, command, options, output)
        except OSError as error:
            sys.exit(f"{options.program}: {error}; --folder says where files are made, now in {options.inputs}")
    output.line(done=True)


if __name__ == "__main__":
    main()
