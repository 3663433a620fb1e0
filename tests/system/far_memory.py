"""`tonari far`: an unchanged program whose large memory is mostly elsewhere."""

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from harness.far import NOBODY, faults_told, need_faults, without_notice
from harness.jobs import PROGRAMS, JobTest, eventually, processes_marked

SOAK = int(os.environ.get("TONARI_SOAK", "1"))
TORTURE = os.path.join(PROGRAMS, "far_torture")
CHILDREN = os.path.join(PROGRAMS, "far_children")
SANDBOXED = os.path.join(PROGRAMS, "sandboxed")
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


def cat(path):
    with open(path) as file:
        return file.read()


class FarTest(JobTest):
    user = None  # who runs the tests

    def setUp(self):
        need_faults(self.user)
        super().setUp()

    def start(self, *arguments, env=None, **options):
        if self.user is not None:
            folder = tempfile.mkdtemp(prefix="far-")
            self.addCleanup(shutil.rmtree, folder)
            os.chown(folder, self.user, self.user)
            options = {"user": self.user, "group": self.user, "extra_groups": [], "cwd": folder, **options}
            env = {**(env or self.environment()), "TMPDIR": folder, "HOME": folder}
        return super().start(*arguments, env=env, **options)

    def run_job(self, *arguments, **options):
        status, output, error = super().run_job(*arguments, **options)
        return status, output, without_notice(error)

    def torture(self, *options, seed=1, threads=4, rounds=60 * SOAK, mib=96):
        """Runs the torture to its end; answers what happened to its memory."""
        status, output, error = self.run_job("far", "--stats=json", *options, "--", TORTURE, seed, threads, rounds, mib)
        self.assertEqual((status, output), (0, "ok\n"), error)
        return json.loads(error)

    def start_torture(self, *options, seed=1):
        job = self.start("far", *options, "--", TORTURE, seed, 2, 0, 64, "wait", stdin=subprocess.PIPE)
        job.output.wait_for("ready")
        return job

    def server_of(self, job, rank):
        """The process that is a rank of the servers' job."""
        for pid in processes_marked(job.mark):
            with open(f"/proc/{pid}/environ") as file, open(f"/proc/{pid}/cmdline") as command:
                if f"TONARI_RANK={rank}\0" in file.read() and "\0serve\0" in command.read():
                    return pid
        self.fail(f"no server {rank}")


class Memory(FarTest):
    def test_is_what_it_would_be_locally(self):
        for share in ("10%", "100%"):
            with self.subTest(local=share):
                found = self.torture("--local", share)
                self.assertGreater(found["faults"], 100)
                self.assertEqual(found["failures"], 0)

    def test_is_carried_away_and_back(self):
        found = self.torture("--local", "16M")
        self.assertGreater(found["bytes_out"], 80 << 20)
        self.assertGreater(found["bytes_in"], 80 << 20)
        self.assertLess(found["resident_bytes"], 18 << 20)
        self.assertEqual(found["limit_bytes"], 16 << 20)

    def test_is_there_for_system_calls(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            self.assertEqual(self.run_job("far", "--local", "8M", "--", CALLS, cwd=folder), (0, "ok\n", ""))

    def test_lies_on_several_servers(self):
        found = self.torture("--local", "16M", "--servers", "3", "--memory", "128M")
        self.assertEqual((found["servers"], found["capacity_bytes"]), (3, 3 * 128 << 20))

    def test_may_be_taken_at_once(self):
        job = self.start_torture("--local", "16M", "--memory", "128M", "--at-once")
        with open(f"/proc/{self.server_of(job, 1)}/status") as status:
            shared = next(int(line.split()[1]) for line in status if line.startswith("RssShmem"))
        self.assertGreaterEqual(shared, 128 << 10)
        job.process.stdin.close()
        self.assertEqual(job.end()[:2], (0, "ready\nok\n"))

    def test_goes_over_the_network(self):
        self.torture("--local", "32M", "--apart", "network", "--memory", "512M", rounds=20)

    def test_that_is_full_ends_the_program(self):
        status, output, error = self.run_job("far", "--local", "8M", "--memory", "32M", TORTURE, 1, 2, 10, 96)
        self.assertEqual((status, output), (137, ""))
        self.assertRegex(error, r"tonari far: out of memory: the servers' 32 MiB are full.*--memory")

    def test_may_be_kept_compressed(self):
        for options in ([], ["--servers", "2", "--replicas", "2"], ["--apart", "network"]):
            with self.subTest(options=options):
                found = self.torture("--store", "lz4", "--local", "16M", "--memory", "512M", *options, rounds=50)
                self.assertGreater(found["packed_bytes_out"], 80 << 20)
                self.assertEqual(found["failures"], 0)

    def test_compressed_is_more_than_there_is_room_for(self):
        options = ["--local", "8M", "--memory", "32M", "--stats=json"]
        words = [PYTHON, "-c", COMPRESSIBLE]
        self.assertEqual(self.run_job("far", *options, "--", *words)[0], 137)
        status, output, error = self.run_job("far", "--store", "lz4", *options, "--", *words)
        self.assertEqual((status, output), (0, "ok\n"), error)
        found = json.loads(error)
        self.assertGreater(found["kept_bytes"], 64 << 20)
        self.assertLess(found["packed_bytes"], found["kept_bytes"] / 8)
        self.assertGreaterEqual(found["stored_bytes"], found["packed_bytes"])
        self.assertLess(found["stored_bytes"], 32 << 20)

    def test_is_asked_for_by_name(self):
        calls = os.path.join(PROGRAMS, "far_by_name")
        self.assertEqual(self.run_job("far", "--local", "8M", "--", calls), (0, "far\nok\n", ""))
        alone = subprocess.run([calls], capture_output=True, text=True)
        self.assertEqual((alone.returncode, alone.stdout), (0, "local\nok\n"))


class Endings(FarTest):
    def test_status_and_output_are_the_programs(self):
        for text, status in (("echo a; echo b >&2; exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -15 $$", 143)):
            with self.subTest(text=text):
                found = self.run_job("far", "--", "sh", "-c", text)
                self.assertEqual(found[0], status)
                if "echo" in text:
                    self.assertEqual(found[1:], ("a\n", "b\n"))

    def test_interrupted(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                job = self.start_torture("--local", "16M")
                job.signal(number)
                self.assertEqual(job.end()[0], 128 + number)

    def test_stopped_and_continued(self):
        job = self.start_torture("--local", "16M")
        own = [pid for pid in processes_marked(job.mark) if cat(f"/proc/{pid}/comm") == "far_torture\n"]

        def are_stopped():
            return [cat(f"/proc/{pid}/stat").rsplit(") ", 1)[1][0] == "T" for pid in (job.pid, *own)]

        job.signal(signal.SIGTSTP)
        eventually(lambda: all(are_stopped()), "it and the program are stopped")
        job.signal(signal.SIGCONT)
        eventually(lambda: not any(are_stopped()), "they go on")
        job.process.stdin.close()
        self.assertEqual(job.end()[:2], (0, "ready\nok\n"))

    def test_killed_with_all_that_it_started(self):
        job = self.start_torture("--local", "16M")
        job.signal(signal.SIGKILL)
        job.process.wait()  # JobTest looks for what is left

    def test_the_program_may_become_another(self):
        found = self.run_job("far", "--", "python3", "-c", "import os; x = bytearray(64 << 20); os.execlp('echo', 'echo', 'other')")
        self.assertEqual(found, (0, "other\n", ""))

    def test_the_keeper_dies(self):
        job = self.start_torture("--local", "16M")
        os.kill(self.server_of(job, 0), signal.SIGKILL)
        status, _, error = job.end()
        self.assertEqual(status, 137)
        self.assertIn("the keeper has gone", error)


class Children(FarTest):
    def far(self, *words):
        status, output, error = self.run_job("far", "--stats=json", *words)
        self.assertEqual(status, 0, error)
        return output, json.loads(error)

    def test_of_wrappers(self):
        for wrapper in (["env", "A=b"], ["sh", "-c", '"$@"; exit $?', "sh"], ["nice"]):
            with self.subTest(wrapper=wrapper[0]):
                output, found = self.far("--children", "--local", "10%", "--", *wrapper, TORTURE, "1", "2", "10", "64")
                self.assertEqual(output, "ok\n")
                self.assertGreater(found["bytes_out"], 50 << 20)
                self.assertEqual(found["processes"], 2)

    def test_have_memory_of_their_own(self):
        for options in (["--local", "20%"], ["--local", "24M", "--store", "lz4"], ["--local", "16M", "--apart", "network"]):
            with self.subTest(options=options):
                output, found = self.far("--children", *options, "--memory", "512M", "--", CHILDREN, "tree", "2", "16")
                self.assertEqual(output, "ok\n")
                self.assertEqual(found["processes"], 7)
                self.assertGreater(found["bytes_out"], 7 * 8 << 20)
                self.assertEqual((found["failures"], found["stored_bytes"]), (0, 0))

    def test_that_are_not_to_have_it_have_none(self):
        output, found = self.far("--local", "10%", "--", "env", TORTURE, "1", "2", "10", "64")
        self.assertEqual((output, found["processes"]), ("ok\n", 1))
        self.assertEqual(found["bytes_out"], 0)

    def test_that_are_left_are_waited_for(self):
        output, found = self.far("--children", "--local", "16M", "--", CHILDREN, "left", "64")
        self.assertEqual((output, found["processes"]), ("left ok\n", 2))

    def start_waiting(self):
        job = self.start("far", "--children", "--local", "16M", "--", CHILDREN, "waiting", "64", stdin=subprocess.PIPE)
        job.output.wait_for("ready")
        return job

    def test_end_when_the_keeper_has_gone(self):
        job = self.start_waiting()
        os.kill(self.server_of(job, 0), signal.SIGKILL)
        status, output, error = job.end()
        self.assertEqual((status, output), (137, "ready\n"))
        self.assertIn("the keeper has gone", error)  # JobTest looks for what is left

    def test_end_when_a_server_has_gone(self):
        job = self.start_waiting()
        os.kill(self.server_of(job, 1), signal.SIGKILL)
        status, output, error = job.end()
        self.assertEqual((status, output), (137, "ready\n"), error)


class ChildrenOfAnOrdinaryUser(Children):
    user = NOBODY


class MemoryOfAnOrdinaryUser(Memory):
    user = NOBODY

    def test_is_of_the_kind_that_tonari_says(self):
        kind = faults_told(self.user)
        job = self.start("far", "--stats=json", "--", "true")
        _, _, error = job.end()
        self.assertEqual(without_notice(error) != error, kind == "programs")
        self.assertEqual(json.loads(without_notice(error))["system_calls_fault"], kind == "all")


class EndingsOfAnOrdinaryUser(Endings):
    user = NOBODY


class SandboxTest(FarTest):
    def environment(self, **variables):
        # Sanitizers look for leaks by a ptrace, which is refused.
        asan = ":".join(filter(None, (os.environ.get("ASAN_OPTIONS"), "detect_leaks=0")))
        return super().environment(ASAN_OPTIONS=asan, **variables)


class InASandbox(SandboxTest):
    within = (SANDBOXED, "--allow-userfaultfd")

    def test_it_is_as_elsewhere(self):
        self.torture("--local", "32M", rounds=20 * SOAK)

    def test_system_calls_and_children_are_as_elsewhere(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            self.assertEqual(self.run_job("far", "--local", "8M", "--", CALLS, cwd=folder), (0, "ok\n", ""))
        self.assertEqual(self.run_job("far", "--children", "--local", "32M", "--", CHILDREN, "tree", 1, 24)[:2], (0, "ok\n"))


class InASandboxOfAnOrdinaryUser(InASandbox):
    user = NOBODY


class InASandboxWithoutFaults(SandboxTest):
    within = (SANDBOXED,)

    def test_it_is_said_what_is_missing(self):
        status, output, error = self.run_job("far", "--", "echo", "never")
        self.assertEqual((status, output), (2, ""))
        self.assertRegex(error, "^tonari far: userfaultfd: Operation not permitted; .*a container's filter must let")
        self.assertEqual(error.count("\n"), 1)


class Deaths(FarTest):
    def test_of_the_only_server_with_data_ends_the_program(self):
        job = self.start_torture("--local", "16M", "--apart", "network", "--memory", "256M")
        os.kill(self.server_of(job, 1), signal.SIGKILL)
        start = time.monotonic()
        status, _, error = job.end()
        self.assertEqual(status, 137)
        self.assertRegex(error, r"tonari far: (a server|server 1) is gone, and with it .*--replicas 2")
        self.assertLess(time.monotonic() - start, 60)

    def test_of_one_server_of_two_loses_nothing(self):
        options = ["--servers", "2", "--replicas", "2", "--memory", "256M", "--progress"]
        for store in ("ram", "lz4"):
            with self.subTest(store=store):
                job = self.start_torture("--local", "16M", "--apart", "network", "--store", store, *options)
                os.kill(self.server_of(job, 2), signal.SIGKILL)
                job.error.wait_for("faults", len(job.error.seen) + 2)  # it goes on for a while without that server
                job.process.stdin.close()
                status, output, error = job.end()
                self.assertEqual((status, output), (0, "ready\nok\n"), error)

    def test_of_some_server_at_some_time_loses_nothing(self):
        for seed in range(1, 1 + 2 * SOAK):
            chance = random.Random(seed)
            store = chance.choice(("ram", "lz4"))
            with self.subTest(seed=seed, store=store):
                options = ["--servers", "3", "--replicas", "2", "--memory", "256M", "--apart", "network", "--store", store]
                job = self.start_torture("--local", "16M", *options, seed=seed)
                time.sleep(chance.uniform(0, 0.5))  # any moment will do
                os.kill(self.server_of(job, chance.randint(1, 3)), signal.SIGKILL)
                time.sleep(chance.uniform(0, 0.5))
                job.process.stdin.close()
                status, output, error = job.end()
                self.assertEqual((status, output), (0, "ready\nok\n"), error)


class Refusals(FarTest):
    def test_what_cannot_be_preloaded(self):
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

    def test_wrong_words(self):
        for words, said in (
            (["--local", "0%"], "--local: it takes a share"),
            (["--local", "101%"], "--local: it takes a share"),
            (["--local", "20"], "20% is a share"),
            (["--servers", "0"], "--servers: it takes a number of servers"),
            (["--servers", ""], "--servers"),
            (["--servers", "99999999999999999999"], "--servers: it takes a number of servers"),
            (["--replicas", "2"], "--replicas 2 needs as many servers"),
            (["--replicas", "3"], "--replicas: it takes 1 or 2"),
            (["--store", "zip"], "--store: it takes ram or lz4"),
            (["--memory", "x"], "--memory: it takes a size"),
            (["--memory", "1000T"], "this host has"),
            (["--memory", "1M"], "whole pieces of 2.0 MiB"),
        ):
            with self.subTest(words=words):
                status, _, error = self.run_job("far", *words, "--", "true")
                self.assertEqual(status, 2)
                self.assertIn(said, error)
        self.assertEqual(self.run_job("far", "--", "/nowhere/at/all")[0], 127)
        self.assertEqual(self.run_job("far")[0], 2)


if __name__ == "__main__":
    unittest.main()
