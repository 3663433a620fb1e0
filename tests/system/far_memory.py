"""`tonari far`: an unchanged program whose large memory is mostly elsewhere."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

from harness.far import NOBODY, SOAK, TORTURE, FarTest, faults_told, without_notice
from harness.jobs import PROGRAMS, asan_options, processes_marked

CHILDREN = os.path.join(PROGRAMS, "far_children")
SANDBOXED = os.path.join(PROGRAMS, "sandboxed")
CREDENTIALS = os.path.join(PROGRAMS, "far_credentials")
CALLS = os.path.join(PROGRAMS, "far_calls")
PYTHON = "/usr/bin/python3"  # no wrapper that executes another, which would have no far memory
# 88 MiB that are there to the end.
COMPRESSIBLE = """
import os
x = b'far memory ' * (8 << 20)
assert all(x.count(b'memory') == 8 << 20 for turn in range(3))
print('ok', flush=True)
os._exit(0)
"""


# Touches one page in 16 of 2 GiB: 128 MiB, in order and then at random.
SPARSE = """
import mmap, os, random
size, step = 2 << 30, 64 << 10
x = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
for at in range(0, size, step):
    x[at] = 1 + at // step % 251
for at in random.sample(range(0, size, step), 4000):
    assert x[at] == 1 + at // step % 251
status = open("/proc/self/status").read()
print(int(status.split("RssAnon:")[1].split()[0]) >> 10, flush=True)
os._exit(0)
"""


# Touches 128 KiB of every 2 MiB of 512 MiB: 32 MiB, of random bits.
VERY_SPARSE = """
import mmap, os
x = mmap.mmap(-1, 512 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
for at in range(0, 512 << 20, 2 << 20):
    x[at:at + (128 << 10)] = os.urandom(128 << 10)
print("ok", flush=True)
os._exit(0)
"""


# 96 MiB of random bits.
INCOMPRESSIBLE = """
import random
x = [random.randbytes(8 << 20) for turn in range(12)]
"""
# mimalloc maps its arenas so: an address without MAP_FIXED, private and anonymous.
MAPPING_WITH_A_HINT = """
import ctypes, os
mmap = ctypes.CDLL(None).mmap
mmap.restype = ctypes.c_void_p
start = mmap(ctypes.c_void_p(HINT), ctypes.c_size_t(64 << 20), 3, 0x22, -1, ctypes.c_long(0))
ctypes.memset(start, 1, 64 << 20)
os._exit(0)
"""


class Memory(FarTest):
    def test_far_memory_has_the_same_content_as_local_memory(self):
        for share in ("10%", "100%"):
            with self.subTest(local=share):
                found = self.torture("--local", share)
                self.assertGreater(found["faults"], 100)
                self.assertEqual(found["failures"], 0)

    def test_far_memory_moves_to_servers_and_back(self):
        found = self.torture("--local", "16M")
        self.assertGreater(found["bytes_out"], 80 << 20)
        self.assertGreater(found["bytes_in"], 80 << 20)
        self.assertGreater(found["wait_seconds"], 0)
        self.assertAlmostEqual(found["wait_us_mean"] * found["faults"] / 1e6, found["wait_seconds"], places=3)
        self.assertEqual(sum(found["wait_ns_histogram"]), found["faults"])
        self.assertLessEqual(found["bytes_in_vain"], found["bytes_in"])
        self.assertLess(found["resident_bytes"], 18 << 20)
        self.assertEqual(found["limit_bytes"], 16 << 20)

    def test_system_calls_work_on_far_memory(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            self.assertEqual(self.run_job("far", "--local", "8M", "--", CALLS, cwd=folder), (0, "ok\n", ""))

    def test_a_mapping_with_a_hint_is_far_unless_the_hint_is_below_4_gib(self):
        for hint, is_far in (("0x3592cc00000", True), ("0x40000000", False)):
            with self.subTest(hint=hint):
                code = MAPPING_WITH_A_HINT.replace("HINT", hint)
                status, _, error = self.run_job("far", "--stats=json", "--local", "16M", "--", PYTHON, "-c", code)
                self.assertEqual(status, 0, error)
                self.assertEqual(json.loads(error.splitlines()[-1])["in_use_peak_bytes"] >= 64 << 20, is_far)

    def test_a_share_of_local_memory_refers_to_the_pages_that_were_touched(self):
        for share in (60, 80):
            with self.subTest(local=share):
                words = ["--stats=json", "--local", f"{share}%", "--", PYTHON, "-c", SPARSE]
                status, output, error = self.run_job("far", *words)
                self.assertEqual(status, 0, error)
                found = json.loads(error.splitlines()[-1])
                self.assertLess(abs(found["touched_bytes"] - (128 << 20)), 4 << 20)
                limit = 128 * share // 100
                self.assertLess(abs(found["limit_bytes"] - (limit << 20)), 2 << 20)
                own = 30  # of Python itself
                self.assertLess(int(output), limit + own)

    def test_statistics_tell_the_largest_limit_and_the_last(self):
        code = "import time; x = bytearray(b'x') * (160 << 20); time.sleep(0.2); del x; time.sleep(0.2)"
        status, _, error = self.run_job("far", "--stats", "--local", "60%", "--", PYTHON, "-c", code)
        self.assertEqual(status, 0, error)
        self.assertRegex(error, r"MiB local \(limit at most (9\d|10\d) MiB, at the end 64 MiB\)")
        _, _, error = self.run_job("far", "--stats", "--local", "16M", "--", PYTHON, "-c", code)
        self.assertIn("local (limit 16 MiB), ", error)

    def test_a_share_is_at_least_64_mib(self):
        found = self.torture("--local", "10%", rounds=5)
        self.assertEqual(found["limit_bytes"], 64 << 20)
        self.assertGreater(found["resident_peak_bytes"], 56 << 20)

    def test_all_threads_of_a_program_follow_when_it_changes_its_user_and_groups(self):
        self.assertEqual(self.run_job("far", "--local", "16M", "--", CREDENTIALS), (0, "ok\n", ""))

    def test_several_servers_add_up_to_one_capacity(self):
        found = self.torture("--local", "16M", "--servers", "3", "--memory", "128M")
        self.assertEqual((found["servers"], found["capacity_bytes"]), (3, 3 * 128 << 20))

    def test_servers_can_allocate_their_memory_at_once(self):
        job = self.start_torture("--local", "16M", "--memory", "128M", "--at-once")
        with open(f"/proc/{self.server_of(job, 1)}/status") as status:
            shared = next(int(line.split()[1]) for line in status if line.startswith("RssShmem"))
        self.assertGreaterEqual(shared, 128 << 10)
        job.process.stdin.close()
        self.assertEqual(job.end()[:2], (0, "ready\nok\n"))

    def test_the_option_bind_core_keeps_all_processes_on_one_core(self):
        for words, is_one in (([], False), (["--bind", "none"], False), (["--bind", "core"], True)):
            with self.subTest(words=words):
                job = self.start_torture("--local", "16M", *words)
                allowed = [os.sched_getaffinity(pid) for pid in processes_marked(job.mark)]
                self.assertGreaterEqual(len(allowed), 4)  # the program, its parent, the keeper, a server
                self.assertEqual(len(set.union(*allowed)) == 1, is_one or len(os.sched_getaffinity(0)) == 1)
                job.process.stdin.close()
                self.assertEqual(job.end()[:2], (0, "ready\nok\n"))

    def test_far_memory_works_over_the_network(self):
        self.torture("--local", "32M", "--apart", "network", "--memory", "512M", rounds=20)

    def test_full_servers_end_the_program(self):
        status, output, error = self.run_job("far", "--local", "8M", "--memory", "32M", TORTURE, 1, 2, 10, 96)
        self.assertEqual((status, output), (137, ""))
        self.assertRegex(error, r"tonari far: out of memory: the servers' 32 MiB are full.*--memory.*--store lz4")
        words = ["--store", "lz4", "--local", "8M", "--memory", "32M"]
        status, _, error = self.run_job("far", *words, PYTHON, "-c", INCOMPRESSIBLE)
        self.assertEqual(status, 137)
        self.assertRegex(error, r"tonari far: out of memory: the servers' 32 MiB are full.*--memory")
        self.assertNotIn("--store", error)

    def test_sparse_data_are_named_if_servers_are_full_of_them(self):
        words = ["--local", "8M", "--memory", "128M", "--", PYTHON, "-c", VERY_SPARSE]
        status, output, error = self.run_job("far", "--stats", *words)
        self.assertEqual((status, output), (137, ""))
        self.assertRegex(error, r"^tonari far: out of memory: the servers' 128 MiB are full, .* hold only \S+ MiB of "
                                r"data, but the data are sparse.*\(--store lz4\)")
        self.assertRegex(error, r"128 MiB of 128 MiB at 1 server \(in pieces of 2 MiB, for \S+ MiB of sparse data\)\n")
        self.assertEqual(self.run_job("far", "--store", "lz4", *words)[:2], (0, "ok\n"))
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            words = ["--local", "8M", "--", PYTHON, "-c", VERY_SPARSE]
            status, output, error = self.run_job("far", "--stats", "--store", f"file:{folder}", *words)
        self.assertEqual((status, output), (0, "ok\n"))
        self.assertRegex(error, r"\d+ MiB of disk space in a file \(in pieces of 2 MiB, for \S+ MiB of sparse data\)\n")

    def test_servers_can_keep_far_memory_compressed(self):
        for options in ([], ["--servers", "2", "--replicas", "2"], ["--apart", "network"]):
            with self.subTest(options=options):
                found = self.torture("--store", "lz4", "--local", "16M", "--memory", "512M", *options, rounds=50)
                self.assertGreater(found["packed_bytes_out"], 80 << 20)
                self.assertEqual(found["failures"], 0)

    def test_compressed_far_memory_can_exceed_the_memory_of_servers(self):
        options = ["--local", "8M", "--memory", "32M", "--stats=json"]
        words = [PYTHON, "-c", COMPRESSIBLE]
        self.assertEqual(self.run_job("far", *options, "--", *words)[0], 137)
        status, output, error = self.run_job("far", "--store", "lz4", *options, "--", *words)
        self.assertEqual((status, output), (0, "ok\n"), error)
        found = json.loads(error)
        self.assertGreater(found["kept_bytes"], 64 << 20)
        self.assertLess(found["packed_bytes"], found["kept_bytes"] / 8)
        self.assertGreaterEqual(found["stored_peak_bytes"], found["packed_bytes"])
        self.assertLess(found["stored_peak_bytes"], 32 << 20)

    def test_explicit_allocation_gives_far_memory_or_local_memory_without_tonari_far(self):
        calls = os.path.join(PROGRAMS, "far_by_name")
        self.assertEqual(self.run_job("far", "--local", "8M", "--", calls), (0, "far\nok\n", ""))
        alone = subprocess.run([calls], capture_output=True, text=True)
        self.assertEqual((alone.returncode, alone.stdout), (0, "local\nok\n"))


class MemoryOfAnOrdinaryUser(Memory):
    user = NOBODY

    def test_tonari_far_reports_the_same_faults_as_tonari_info(self):
        kind = faults_told(self.user)
        job = self.start("far", "--faults", "keeper", "--stats=json", "--", "true")
        _, _, error = job.end()
        self.assertEqual(without_notice(error) != error, kind == "programs")
        self.assertEqual(json.loads(error.splitlines()[-1])["system_calls_fault"], kind == "all")


class SandboxTest(FarTest):
    def environment(self, **variables):
        # Sanitizers look for leaks by a ptrace, which is refused.
        return super().environment(ASAN_OPTIONS=asan_options("detect_leaks=0"), **variables)


class InASandbox(SandboxTest):
    within = (SANDBOXED, "--allow-userfaultfd")

    def test_far_memory_works_in_a_sandbox_that_allows_userfaultfd(self):
        self.torture("--local", "32M", rounds=20 * SOAK)

    def test_system_calls_and_children_work_in_a_sandbox_that_allows_userfaultfd(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            self.assertEqual(self.run_job("far", "--local", "8M", "--", CALLS, cwd=folder), (0, "ok\n", ""))
        found = self.run_job("far", "--children", "--local", "32M", "--", CHILDREN, "tree", 1, 24)
        self.assertEqual(found[:2], (0, "ok\n"))


class InASandboxOfAnOrdinaryUser(InASandbox):
    user = NOBODY


class InASandboxWithoutFaults(SandboxTest):
    within = (SANDBOXED,)

    def test_the_permission_that_a_sandbox_refuses_is_named(self):
        status, output, error = self.run_job("far", "--", "echo", "never")
        self.assertEqual((status, output), (2, ""))
        self.assertRegex(error, "^tonari far: userfaultfd: Operation not permitted; .*a container's filter must let")
        self.assertEqual(error.count("\n"), 1)


class Refusals(FarTest):
    def test_programs_that_ignore_preloads_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            plain = os.path.join(folder, "plain.cpp")
            static = os.path.join(folder, "static")
            with open(plain, "w") as file:
                file.write("int main() {}\n")
            subprocess.run([os.environ.get("CXX", "g++"), "-static", plain, "-o", static], check=True)
            status, _, error = self.run_job("far", "--", static)
            self.assertEqual(status, 2)
            self.assertIn("is statically linked", error)
            other = os.path.join(folder, "other_users")
            shutil.copy("/bin/true", other)
            os.chown(other, 65534, 65534)
            os.chmod(other, 0o4755)
            status, _, error = self.run_job("far", "--", other)
            self.assertEqual(status, 2)
            self.assertIn("setuid", error)

    def test_wrong_arguments_of_tonari_far_are_refused(self):
        for words, said in (
            (["--local", "0%"], "--local: must be a share"),
            (["--local", "101%"], "--local: must be a share"),
            (["--local", "20"], "a share is written 20%"),
            (["--servers", "0"], "--servers: must be a number of servers"),
            (["--servers", ""], "--servers"),
            (["--servers", "-1"], "--servers: must be a number of servers"),
            (["--servers", "99999999999999999999"], "--servers: must be a number of servers"),
            (["--replicas", "2"], "--replicas 2: needs at least as many servers"),
            (["--replicas", "3"], "--replicas: must be 1 or 2"),
            (["--store", "zip"], "--store: must be ram, lz4, file:DIRECTORY, or lz4,file:DIRECTORY, not 'zip'"),
            (["--store", "lz4,file:"], "--store: must be ram, lz4, file:DIRECTORY, or lz4,file:DIRECTORY"),
            (["--store", "lz4,disk"], "--store: must be ram, lz4, file:DIRECTORY, or lz4,file:DIRECTORY"),
            (["--bind", "cores"], "--bind: must be core or none"),
            (["--memory", "x"], "--memory: must be a size"),
            (["--memory", "1000T"], "this host has only"),
            (["--memory", "1M"], "--memory: must be a multiple of 2 MiB, such as 512M or 4G, not '1M'"),
            (["--memory", "3M"], "--memory: must be a multiple of 2 MiB, such as 512M or 4G, not '3M'"),
        ):
            with self.subTest(words=words):
                status, _, error = self.run_job("far", *words, "--", "true")
                self.assertEqual(status, 2)
                self.assertIn(said, error)
        self.assertEqual(self.run_job("far", "--", "/nowhere/at/all")[0], 127)
        self.assertEqual(self.run_job("far")[0], 2)


if __name__ == "__main__":
    unittest.main()
