"""Runs Debian's programs unchanged with little of their memory local: each prints the same as without tonari."""

import hashlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from harness.far import NOBODY, need_faults, without_notice  # noqa: E402
from harness.jobs import PATIENCE, TONARI, JobTest, eventually  # noqa: E402

PYTHON = "/usr/bin/python3"  # Debian's, which has NumPy
NUMPY = """
import hashlib, numpy
numbers = numpy.random.default_rng(1).random(2_000_000)
numbers.sort()
print(hashlib.sha256(numbers.tobytes()).hexdigest())
print(hashlib.sha256(numpy.fft.ifft(numpy.fft.fft(numbers[::2])).real.round(6).tobytes()).hexdigest())
square = numpy.random.default_rng(2).integers(0, 9, (1000, 1000)).astype(float)
print(hashlib.sha256((square @ square).tobytes()).hexdigest())
"""
SQLITE = """
import sqlite3
base = sqlite3.connect(":memory:")
base.execute("create table t (n integer primary key, half text, square integer)")
base.executemany("insert into t values (?, ?, ?)", ((n, str(n / 2) * 5, n * n) for n in range(400_000)))
base.execute("create index i on t (half)")
base.execute("delete from t where n % 7 = 3")
print(base.execute("select count(*), sum(square), max(half), min(half) from t").fetchone())
print(base.execute("select * from t order by half limit 5 offset 100000").fetchall())
"""


PROCESSES = """
import hashlib, multiprocessing, numpy
def work(seed):
    numbers = numpy.random.default_rng(seed).random(1_000_000)
    numbers.sort()
    return hashlib.sha256(numbers.tobytes()).hexdigest()
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(work, range(4)))
"""
FORKED_PROCESSES = """
import hashlib, multiprocessing, numpy
numbers = numpy.random.default_rng(1).random(3_000_000)
def work(part):
    return hashlib.sha256(numbers[part::4].tobytes()).hexdigest()
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(work, range(4)))
"""
FILES = """
import hashlib, os, random, socket, subprocess, tempfile, threading
import numpy
os.chdir(tempfile.mkdtemp(dir="."))
size = 24 << 20
content = random.Random(1).randbytes(size)
open("content", "wb", buffering=0).write(content)
print(hashlib.sha256(open("content", "rb").read()).hexdigest())
room = memoryview(bytearray(size))
with open("content", "rb", buffering=0) as file:
    done = 0
    while done < size:
        done += file.readinto(room[done:])
print(hashlib.sha256(room).hexdigest())
away = bytearray(size)
print(os.preadv(os.open("content", os.O_RDONLY), [memoryview(away)[:3_000_000], room[5:9_000_000]], 7))
print(hashlib.sha256(away).hexdigest(), hashlib.sha256(room).hexdigest())
for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    here, there = socket.socketpair(socket.AF_UNIX, kind)
    def send():
        for start in range(0, size, 1 << 16):
            here.sendmsg([room[start : start + 100], room[start + 100 : start + (1 << 16)]])
        here.close()
    thread = threading.Thread(target=send)
    thread.start()
    done = 0
    while got := there.recv_into(memoryview(away)[done : done + (1 << 17)]):
        done += got
    thread.join()
    print(done, hashlib.sha256(away).hexdigest())
texts = [str(n) * 7 for n in range(300_000)]
for n in range(0, 300_000, 1000):
    os.mkdir(texts[n])
print(sorted(os.listdir("."))[:5], all(os.path.isdir(text) for text in texts[::1000]))
variables = {text: text * 9 for text in texts[:300]}
print(subprocess.run(["sh", "-c", "echo " + texts[77]], env=variables, capture_output=True).stdout)
numbers = numpy.fromfile("content", dtype=numpy.uint8)
numbers[::2].tofile("numbers")
print(hashlib.sha256(open("numbers", "rb").read()).hexdigest())
"""


# Their heaps are reserved address space.
JAVA = """
import java.util.*;
class Work {
  public static void main(String[] words) {
    var random = new Random(1);
    var rows = new long[6000][];
    for (int i = 0; i < rows.length; i++) rows[i] = random.longs(1000).toArray();
    var names = new TreeMap<Long, String>();
    for (long[] row : rows) for (int i = 0; i < 20; i++) names.put(row[i], "number " + row[i]);
    long sum = 0;
    for (long[] row : rows) for (long number : row) sum = sum * 31 + number;
    for (String name : names.values()) sum = sum * 31 + name.hashCode();
    System.out.println(sum);
  }
}
"""
JAVASCRIPT = """
const pairs = [];
for (let i = 0; i < 600000; i++) pairs.push({number: i * 7919 % 600011, name: "name " + i});
pairs.sort((a, b) => a.number - b.number);
const numbers = new Array(3000000).fill(0).map((_, i) => i * 0.5);
let sum = 0;
for (const pair of pairs) sum = (sum * 31 + pair.name.length + pair.number) % 1000003;
for (const number of numbers) sum += number;
console.log(sum);
"""


def values_for_redis(seed):
    return {b"key:%d" % n: hashlib.sha256(b"%d" % (n * seed)).hexdigest().encode() * (1 + n % 60) for n in range(40_000)}


def far(*options, local="12M", min_size="256K"):
    return [TONARI, "far", "--local", local, "--min-size", min_size, *options, "--"]


class RealPrograms(JobTest):
    """Runs as root. A subclass below runs the same tests as an ordinary user."""

    user = None

    def setUp(self):
        need_faults(self.user)
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="real-")
        self.addCleanup(shutil.rmtree, self.folder)
        os.chmod(self.folder, 0o777)

    def path(self, name):
        return os.path.join(self.folder, name)

    def need(self, program, installed_by="scripts/setup far"):
        if shutil.which(program) is None and not os.path.exists(program):
            self.skipTest(f"{program} is not installed: {installed_by}")

    def run_program(self, words, **options):
        done = subprocess.run(
            words, capture_output=True, timeout=10 * PATIENCE, env=self.environment(), cwd=self.folder, user=self.user,
            **options,
        )
        return done.returncode, done.stdout, done.stderr

    def compare(self, words, *options, is_small=False, **memory):
        """Runs the program without far memory and with it, and returns the output, which must be the same. Unless
        is_small, some of the program's memory must have been moved to a server."""
        self.need(words[0])
        expected = self.run_program(words)
        self.assertEqual(expected[0], 0, expected[2])
        status, output, error = self.run_program(far("--stats=json", *options, **memory) + words)
        *said, statistics = without_notice(error.decode()).splitlines(keepends=True)
        if is_small:
            said = [line for line in said if not line.startswith("tonari far: nothing went to far memory")]
        self.assertEqual((status, output, "".join(said).encode()), expected)
        if not is_small:
            self.assertGreater(json.loads(statistics)["bytes_out"], 1 << 20)
        return expected[1]

    def write_lines(self, name, count):
        numbers = random.Random(1)
        with open(self.path(name), "w") as file:
            file.writelines(f"{numbers.getrandbits(64):x} {i}\n" for i in range(count))

    def test_sort_prints_the_same_with_far_memory(self):
        self.write_lines("lines", 500_000)
        self.compare(["sort", "-S", "200M", "--parallel=2", "lines"])

    def test_gzip_and_xz_write_the_same_with_far_memory(self):
        self.write_lines("lines", 40_000)  # beyond 2 MiB it looks everywhere all the time, and is slow on swap, too
        packed = self.compare(["xz", "-2", "-c", "lines"], local="8M")
        with open(self.path("packed.xz"), "wb") as file:
            file.write(packed)
        unpacked = self.compare(["xz", "-d", "-c", "packed.xz"], is_small=True)
        with open(self.path("lines"), "rb") as file:
            self.assertEqual(hashlib.sha256(unpacked).digest(), hashlib.sha256(file.read()).digest())
        self.compare(["gzip", "-n", "-c", "lines"], is_small=True)

    def test_numpy_computes_the_same_with_far_memory(self):
        self.compare([PYTHON, "-c", NUMPY])

    def test_files_and_sockets_carry_the_same_data_with_far_memory(self):
        self.compare([PYTHON, "-c", FILES])

    def test_sqlite_returns_the_same_rows_with_far_memory(self):
        self.compare([PYTHON, "-c", SQLITE], min_size="4K")  # its pages

    def test_a_compiler_writes_the_same_code_with_far_memory(self):
        program = subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True, check=True)
        with open(self.path("hello.cpp"), "w") as file:
            file.write("#include <iostream>\n#include <map>\n#include <string>\n"
                       "int main() { std::map<std::string, int> m; std::cout << m.size(); }\n")
        source, result = self.path("hello.ii"), self.path("hello.s")
        subprocess.run(["g++", "-E", self.path("hello.cpp"), "-o", source], check=True)
        words = [program.stdout.strip(), "-quiet", "-O2", "-fpreprocessed", source, "-o", result]
        self.compare(words, local="28M")  # it needs some two thirds of its memory all the time
        with open(result) as file:
            with_far_memory = file.read()
        self.assertEqual(self.run_program(words)[0], 0)
        with open(result) as file:
            self.assertEqual(file.read(), with_far_memory)

    def test_a_compiler_driver_and_its_children_work_with_far_memory(self):
        with open(self.path("one.cpp"), "w") as file:
            file.write("#include <cstdio>\n#include <string>\n"
                       "int main(int n, char** w) { std::puts((std::string(w[n - 1]) + '!').c_str()); }\n")
        words = ["g++", "-O2", self.path("one.cpp"), "-o", self.path("one")]
        self.compare(words, "--children", local="20M")
        self.assertEqual(subprocess.run([self.path("one"), "a"], capture_output=True).stdout, b"a!\n")

    def test_python_processes_compute_the_same_with_far_memory(self):
        with open(self.path("work.py"), "w") as file:
            file.write(PROCESSES)
        self.compare([PYTHON, self.path("work.py")], "--children")

    def test_forked_python_processes_compute_the_same_with_far_memory(self):
        with open(self.path("work.py"), "w") as file:
            file.write(FORKED_PROCESSES)
        for faults in ("keeper", "self"):
            with self.subTest(faults=faults):
                self.compare([PYTHON, self.path("work.py")], "--faults", faults)

    def test_java_computes_the_same_with_far_memory(self):
        self.need("javac", "scripts/setup programs")
        with open(self.path("Work.java"), "w") as file:
            file.write(JAVA)
        for collector, faults in (("Serial", "keeper"), ("G1", "self")):
            with self.subTest(collector=collector, faults=faults):
                words = ["java", "-Xmx512m", f"-XX:+Use{collector}GC", "-XX:-UseCompressedOops", "Work.java"]
                self.compare(words, "--faults", faults, local="60%")

    def test_javascript_computes_the_same_with_far_memory(self):
        self.need("node", "apt-get install nodejs")
        for faults in ("keeper", "self"):
            with self.subTest(faults=faults):
                self.compare(["node", "-e", JAVASCRIPT], "--faults", faults, local="80%")

    def test_stress_ng_finds_no_wrong_far_memory(self):
        self.need("stress-ng")
        words = ["stress-ng", "--quiet", "--vm", "2", "--vm-bytes", "64M", "--vm-ops", "2000", "--verify",
                 "--temp-path", self.folder]
        self.compare(words, "--children", local="24M")

    def test_redis_returns_all_stored_values_with_far_memory(self):
        values = values_for_redis(1)
        server, stream = self.start_redis(far())
        self.set_all(stream, values)
        keys = list(values)
        random.Random(2).shuffle(keys)
        self.get_all(stream, keys, values)
        self.stop_redis(server, stream)

    def test_redis_saves_all_values_as_they_were_with_far_memory(self):
        # Redis overwrites its environment, which names the keeper if another program has executed Redis.
        for faults, wrapper in (("keeper", []), ("self", []), ("self", ["env", "A=b"])):
            with self.subTest(faults=faults, wrapper=wrapper):
                values = values_for_redis(3)
                server, stream = self.start_redis([*far("--faults", faults), *wrapper])
                self.set_all(stream, values)
                self.ask_all(stream, [(b"BGSAVE",)], lambda found, _: found == b"Background saving started")
                self.set_all(stream, values_for_redis(4))  # while a forked child saves
                eventually(lambda: b"rdb_bgsave_in_progress:0" in self.ask(stream, b"INFO", b"persistence"), "it saved")
                self.assertIn(b"rdb_last_bgsave_status:ok", self.ask(stream, b"INFO", b"persistence"))
                self.stop_redis(server, stream)
                server, stream = self.start_redis([])  # loads what was saved
                self.get_all(stream, values, values)
                self.stop_redis(server, stream)

    def start_redis(self, within):
        self.need("redis-server")
        name = self.path("redis")
        words = ["redis-server", "--port", "0", "--unixsocket", name, "--unixsocketperm", "777", "--save", "",
                 "--dir", self.folder]
        server = subprocess.Popen(within + words, stdout=subprocess.DEVNULL, env=self.environment(), cwd=self.folder,
                                  user=self.user)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        eventually(lambda: os.path.exists(name) or server.poll() is not None, "redis listens")
        connection = socket.socket(socket.AF_UNIX)
        self.addCleanup(connection.close)
        connection.connect(name)
        stream = connection.makefile("rwb")
        self.addCleanup(stream.close)
        eventually(lambda: self.ask(stream, b"PING") == b"PONG", "redis has loaded its values")
        return server, stream

    def stop_redis(self, server, stream):
        stream.write(b"SHUTDOWN NOSAVE\r\n")
        stream.flush()
        self.assertEqual(server.wait(timeout=PATIENCE), 0)

    def set_all(self, stream, values):
        self.ask_all(stream, ((b"SET", key, value) for key, value in values.items()), lambda found, _: found == b"OK")

    def get_all(self, stream, keys, values):
        self.ask_all(stream, ((b"GET", key) for key in keys), lambda found, words: found == values[words[1]])

    def ask(self, stream, *words):
        replies = []
        self.ask_all(stream, [words], lambda found, _: replies.append(found) or True)
        return replies[0]

    def ask_all(self, stream, commands, is_right):
        """Sends commands, a hundred at a time, and checks each reply."""
        batch = []

        def send():
            for words in batch:
                stream.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
            stream.flush()
            for words in batch:
                line = stream.readline().rstrip()
                found = line[1:]
                if line.startswith(b"$") and line != b"$-1":
                    found = stream.read(int(line[1:]) + 2)[:-2]
                self.assertTrue(is_right(found, words), (words, line))
            batch.clear()

        for words in commands:
            batch.append(words)
            if len(batch) == 100:
                send()
        send()


class OfAnOrdinaryUser(RealPrograms):
    """Runs as a user whose system calls get no userfaultfd events under the kernel's default settings."""

    user = NOBODY


if __name__ == "__main__":
    unittest.main()
