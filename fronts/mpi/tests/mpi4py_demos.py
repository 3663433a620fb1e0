#!/usr/bin/env python3
"""Runs the demos of mpi4py, which is built with tonari's mpicc, and checks what they print.

Usage: mpi4py_demos.py TONARI [NAME...]. Exits with 77 if `scripts/setup mpi` has not fetched mpi4py. With names, only
these demos run.

Left out are demos that need what tonari's MPI does not support yet: cpi-rma.py, cpi-dpm.py, most of nxtval/, spawning/,
mandelbrot-master.py. Others need Fortran, the C++ functions that MPI 3.0 has removed, further packages, or the internet.
run_julia.py computes for long.
"""

import math
import pathlib
import re
import shutil
import sys
import tempfile
import time

import mpi4py_suite
import projects

HELLO = r"Hello, World! I am process (\d+) of (\d+) on \S+\."
PRIMES = [112272535095293, 112582705942171, 112272535095293, 115280095190773, 115797848077099, 117450548693743,
          993960000099397]
DEMOS = {}


def demo(function):
    DEMOS[function.__name__] = function
    return function


class Demos:
    """A copy of the demos, and the MPI that they run on."""

    def __init__(self, command, folder):
        self.mpi = projects.tonari(command)
        self.package = mpi4py_suite.built(self.mpi)
        self.folder = pathlib.Path(shutil.copytree(self.package / "demo", f"{folder}/demo"))
        pathlib.Path(folder, "test").symlink_to(self.package / "test")  # a demo uses a file from there
        self.mpi.environment |= {"PYTHON": str(projects.PYTHON), "MPIEXEC": self.mpi.start[0]}

    def run(self, ranks, path, *arguments, **options):
        """Returns what ranks that run a Python program print."""
        folder, _, name = path.rpartition("/")
        return self.mpi.run(ranks, [projects.PYTHON, *arguments, name], self.folder / folder, **options)

    def execute(self, ranks, folder, text):
        """Returns what ranks that run this text in a demo's folder print."""
        return self.mpi.run(ranks, [projects.PYTHON, "-c", text], self.folder / folder)

    def script(self, folder, *command):
        """Runs a demo's own script, which starts the ranks."""
        projects.shell(self.folder / folder, *command, **self.mpi.environment)

    def config(self, *names):
        """Returns options for programs that use Python from C."""
        result = projects.shell(self.folder, projects.PYTHON, "python-config", *names)
        return result.split()


def expect(condition, output):
    if not condition:
        sys.exit(f"this is not what the demo should print:\n{output}")


def expect_greetings(output, ranks):
    expect(sorted(re.findall(HELLO, output)) == [(str(rank), str(ranks)) for rank in range(ranks)], output)


@demo
def hello(demos):
    expect_greetings(demos.run(5, "helloworld.py"), 5)
    projects.shell(demos.folder, demos.mpi.cc, "helloworld.c", "-o", "helloworld.exe")
    expect_greetings(demos.mpi.run(5, [demos.folder / "helloworld.exe"], demos.folder), 5)


@demo
def pi(demos):
    output = demos.run(3, "compute-pi/cpi-cco.py", input="100\n1000\n0\n")
    found = re.findall(r"pi is approximately ([\d.]+), error is ([\d.]+)", output)
    expect(len(found) == 2, output)
    for intervals, (value, error) in zip((100, 1000), found):
        right = sum(4 / (1 + ((i + 0.5) / intervals) ** 2) for i in range(intervals)) / intervals
        expect(abs(float(value) - right) < 1e-13 and abs(float(error) - abs(right - math.pi)) < 1e-13, output)


@demo
def mandelbrot(demos):
    text = ("import runpy, zlib\n"
            "M = runpy.run_path('{}').get('M')\n"
            "if M is not None: print('picture', zlib.crc32(M.tobytes()))\n")
    alone = demos.execute(1, "mandelbrot", text.format("mandelbrot-seq.py"))
    together = demos.execute(4, "mandelbrot", text.format("mandelbrot.py"))
    pictures = re.findall(r"picture \d+", alone + together)
    expect(len(pictures) == 2 and pictures[0] == pictures[1], alone + together)


@demo
def counter_in_a_thread(demos):
    demos.run(5, "nxtval/nxtval-threads.py")  # it asserts that no number is given twice


@demo
def threads_that_send_and_receive(demos):
    demos.run(2, "threads/sendrecv.py")


@demo
def reductions(demos):
    output = demos.run(5, "reductions/test_reductions.py")
    expect(re.findall(r"^OK$", output, re.MULTILINE) == ["OK"] * 5, output)


@demo
def ranks_in_turn(demos):
    output = demos.run(5, "sequential/test_seq.py")
    expect([rank for rank, _ in re.findall(HELLO, output)] == list("01234"), output)


@demo
def datatypes_of_the_reference(demos):
    demos.script("mpi-ref-v1", "sh", "runtests.sh")


@demo
def starting_and_ending(demos):
    options = ["threads=false", "thread_level=single", "thread_level=funneled", "thread_level=serialized",
               "thread_level=multiple", "fast_reduce=false", "recv_mprobe=false", "irecv_bufsz=0", "errors=exception"]
    for option in options:  # with other values of errors it opens a file
        demos.mpi.run(2, [projects.PYTHON, "test_0.py", option], demos.folder / "init-fini")
    for name in ("test_1", "test_2", "test_3", "test_4", "test_5", "test_6", "test_mpi40"):
        demos.run(2, f"init-fini/{name}.py")


@demo
def exceptions_end_the_job(demos):
    demos.script("test-run", projects.PYTHON, "test_run.py")


@demo
def futures(demos):
    output = demos.run(5, "futures/run_cpi.py", "-m", "mpi4py.futures")
    expect(re.search(r"pi: 3\.14159\d+, error: \d\.\d+e-0[67] \(256 intervals, 4 workers\)", output), output)
    output = demos.run(5, "futures/run_hello.py", "-m", "mpi4py.futures")
    expect(re.findall(r"I am worker (\d) of 4", output) == list("0123"), output)
    output = demos.run(5, "futures/run_primes.py", "-m", "mpi4py.futures")
    expect(output.splitlines() == [f"{prime} is prime: True" for prime in PRIMES], output)
    output = demos.run(3, "futures/test_futures.py", "-m", "mpi4py.futures")
    expect(re.search(r"^Ran \d{3} tests .*\n+OK", output, re.MULTILINE), output)


@demo
def benchmarks(demos):
    for path in sorted(demos.folder.glob("osu_*.py")):
        name = path.stem
        ranks = 2 if name in ("osu_bw", "osu_bibw", "osu_latency") else 4
        small = "_small" if name == "osu_multi_lat" else ""
        options = f"MAX_MSG_SIZE=1 << 18, skip{small}=2, loop{small}=20, skip_large=1, loop_large=3"
        output = demos.execute(ranks, ".", f"import {name}\n{name}.{name}({options})\n")
        lines = re.findall(r"^ *(?:\d+ +)?(\d+\.\d+)$", output, re.MULTILINE)
        expect(len(lines) >= (1 if name == "osu_barrier" else 18) and all(float(value) > 0 for value in lines), output)


@demo
def extensions(demos):
    """Modules in C and Cython that get a communicator from Python."""
    include = demos.config("--includes") + [f"-I{demos.package}/installed/mpi4py/include"]
    suffix = demos.config("--extension-suffix")[0]
    for name, source, target in (("wrap-c", "helloworld.c", f"helloworld{suffix}"),
                                 ("wrap-ctypes", "helloworld.c", "libhelloworld.so"),
                                 ("wrap-cython", "helloworld.pyx", f"helloworld{suffix}"),
                                 ("cython", "helloworld.pyx", f"helloworld{suffix}")):
        folder = demos.folder / name
        if source.endswith(".pyx"):
            projects.shell(folder, projects.PYTHON, "-m", "cython", source, **demos.mpi.environment)
            source = "helloworld.c"
        projects.shell(folder, demos.mpi.cc, "-w", "-shared", "-fPIC", *include, source, "-o", target)
        if name == "cython":
            output = demos.execute(2, name, "import helloworld")
            expect(sorted(re.findall(HELLO, output)) == [("0", "2")] * 3 + [("1", "2")] * 3, output)
        else:
            expect_greetings(demos.run(2, f"{name}/test.py"), 2)


@demo
def python_inside_of_a_program(demos):
    folder = demos.folder / "embedding"
    projects.shell(folder, demos.mpi.cc, "-w", "helloworld.c", "-o", "helloworld.exe", *demos.config("--includes"),
                   *demos.config("--ldflags", "--embed"))
    expect_greetings(demos.mpi.run(2, [folder / "helloworld.exe"], folder), 2)


def main():
    with tempfile.TemporaryDirectory() as folder:
        demos = Demos(sys.argv[1], folder)
        for name in sys.argv[2:] or DEMOS:
            start = time.monotonic()
            DEMOS[name](demos)
            print(f"{name.replace('_', ' ')}: right, {time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
