"""How `tonari far` ends: with its program, with the program's children, or with a server."""

import json
import os
import random
import signal
import subprocess
import tempfile
import time
import unittest

from harness.far import NOBODY, SOAK, TORTURE, FarTest, memory_group
from harness.jobs import PATIENCE, PROGRAMS, TONARI, eventually

CHILDREN = os.path.join(PROGRAMS, "far_children")
STATIC = os.path.join(PROGRAMS, "far_static")
PYTHON = "/usr/bin/python3"  # no wrapper that executes another, which would have no far memory
# All that there is now is locked, if the user may; what comes later is paged all the same.
LOCKING = """
import ctypes, os
lock_now = 1
ctypes.CDLL(None).mlockall(lock_now)
x = bytearray(b"locked? ") * (8 << 20)
assert all(x.count(b"?") == 8 << 20 for turn in range(2))
status = open("/proc/self/status").read()
locked = int(status.split("VmLck:")[1].split()[0])
assert locked < 1 << 20, status
print("ok", flush=True)
os._exit(0)
"""
# Reads at random until its input ends.
SCATTERED = """
import os, random, sys, threading
x = bytearray(b"scatter ") * (int(sys.argv[1]) << 17)
def end():
    os.read(0, 1)
    os._exit(0)
threading.Thread(target=end).start()
while True:
    x[random.randrange(len(x))]
"""
STREAMING = """
import os
x = bytearray(64 << 20)
some = b"stream! " * (1 << 16)  # smaller than --min-size
for at in range(0, 64 << 20, len(some)):
    x[at:at + len(some)] = some
assert x.count(b"!") == 8 << 20
print("ok", flush=True)
os._exit(0)
"""

def cat(path):
    with open(path) as file:
        return file.read()


class Endings(FarTest):
    def test_tonari_far_passes_on_status_and_output_of_the_program(self):
        for text, status in (("echo a; echo b >&2; exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137),
                             ("kill -15 $$", 143)):
            with self.subTest(text=text):
                found = self.run_job("far", "--", "sh", "-c", text)
                self.assertEqual(found[0], status)
                if "echo" in text:
                    self.assertEqual(found[1], "a\n")
                    self.assertEqual(found[2].splitlines()[0], "b")

    def test_a_signal_ends_the_program_under_tonari_far(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                job = self.start_torture("--local", "16M")
                job.signal(number)
                self.assertEqual(job.end()[0], 128 + number)

    def test_the_program_stops_and_continues_with_tonari_far(self):
        # SIGTSTP stops nothing in a process group that a shell has left to itself: this one has its parent here.
        job = self.start_torture("--local", "16M", preexec_fn=os.setpgrp)
        children = map(int, cat(f"/proc/{job.pid}/task/{job.pid}/children").split())
        program = [pid for pid in children if cat(f"/proc/{pid}/comm") == "far_torture\n"]
        self.assertEqual(len(program), 1)

        def are_stopped():
            return [cat(f"/proc/{pid}/stat").rsplit(") ", 1)[1][0] == "T" for pid in (job.pid, *program)]

        job.signal(signal.SIGTSTP)
        eventually(lambda: all(are_stopped()), "it and the program are stopped")
        job.signal(signal.SIGCONT)
        eventually(lambda: not any(are_stopped()), "they go on")
        job.process.stdin.close()
        self.assertEqual(job.end()[:2], (0, "ready\nok\n"))

    def test_no_process_is_left_when_tonari_far_is_killed(self):
        job = self.start_torture("--local", "16M")
        job.signal(signal.SIGKILL)
        job.process.wait()  # JobTest checks that no process is left

    def test_a_program_with_far_memory_may_execute_another(self):
        code = "import os; x = bytearray(64 << 20); os.execlp('echo', 'echo', 'other')"
        found = self.run_job("far", "--", "python3", "-c", code)
        self.assertEqual(found, (0, "other\n", ""))

    def test_unwritable_statistics_do_not_change_the_status_of_the_program(self):
        with open("/dev/full", "w") as full:
            words = [TONARI, "far", "--stats", "--", PYTHON, "-c", "x = bytearray(64 << 20); print(len(x))"]
            done = subprocess.run(words, stdout=subprocess.PIPE, stderr=full, env=self.environment(), user=self.user)
            self.assertEqual((done.returncode, done.stdout), (0, b"%d\n" % (64 << 20)))

    def test_a_limit_of_descriptors_that_is_too_low_is_named(self):
        for limit in (4, 6, 8):
            words = ["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh", TONARI, "far", "--", "true"]
            done = subprocess.run(words, capture_output=True, text=True, env=self.environment(), user=self.user,
                                  timeout=PATIENCE)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, "tonari [a-z]*: .*(ulimit -n|open files)")

    def test_mlockall_locks_neither_the_arena_nor_memory_allocated_later(self):
        status, output, error = self.run_job("far", "--stats=json", "--local", "16M", "--", PYTHON, "-c", LOCKING)
        self.assertEqual((status, output), (0, "ok\n"), error)
        self.assertGreater(json.loads(error)["bytes_out"], 32 << 20)

    def test_the_death_of_the_keeper_ends_the_program(self):
        job = self.start_torture("--local", "16M")
        os.kill(self.server_of(job, 0), signal.SIGKILL)
        status, _, error = job.end()
        self.assertEqual(status, 137)
        self.assertRegex(error, "the keeper has ended, .*; its message should stand above\n")

    def test_a_program_without_large_data_is_told_that_nothing_was_far(self):
        _, _, error = self.run_job("far", "--", PYTHON, "-c", "")
        self.assertRegex(error, "^tonari far: nothing went to far memory. Possible reasons: the program makes no "
                                "allocation of at least 1.0 MiB; a smaller --min-size makes smaller ones far, too. .*\n$")

    def test_a_program_that_starts_one_without_the_library_is_told_the_possible_reasons(self):
        code = "x = bytearray(64 << 20)"
        _, _, error = self.run_job("far", "--", "env", "-i", PYTHON, "-c", code)
        self.assertRegex(error, r"^tonari far: nothing went to far memory. Possible reasons: .* Or a program that env "
                                r"starts .*statically linked.*setuid.*\(env -i, sudo\)\n$")

    def test_a_program_that_a_limit_of_addresses_keeps_local_is_told_so(self):
        for start in ("exec ", ""):
            with self.subTest(start=start):
                command = f'ulimit -v 4000000; {start}"$@"'
                words = ["sh", "-c", command, "sh", PYTHON, "-c", "x = bytearray(64 << 20)"]
                status, _, error = self.run_job("far", "--", *words)
                self.assertEqual(status, 0, error)
                self.assertRegex(error, r"^tonari far: a process stays with local memory: .*: Cannot allocate memory; "
                                        r".*raise ulimit -v\ntonari far: nothing went to far memory: a process could "
                                        r"have none, as its own message says\n$")

    def test_a_program_is_told_why_its_static_arrays_were_local(self):
        _, _, error = self.run_job("far", "--min-size", "1G", "--", STATIC)
        self.assertRegex(error, r"^tonari far: nothing went to far memory: \S+ made no allocation of at least 1.0 GiB, "
                                r"and has \d+ MiB of static arrays, each of which is smaller; use a smaller --min-size")

    def test_a_program_without_symbols_is_told_why_its_static_arrays_were_local(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            source = os.path.join(folder, "stripped.cpp")
            stripped = os.path.join(folder, "stripped")
            with open(source, "w") as file:
                file.write("#include <sys/ioctl.h>\nstatic volatile char data[32 << 20];\n"
                           "int main() { data[5] = 1; return ioctl(-1, 0) == 0; }\n")
            subprocess.run([os.environ.get("CXX", "g++"), "-s", source, "-o", stripped], check=True)
            for options, why in ((["--min-size", "4M"], "the file has no symbols, and they are less than 64 MiB"),
                                 (["--faults", "self"], "the file has no symbols to tell them from locks")):
                with self.subTest(options=options):
                    status, _, error = self.run_job("far", *options, "--", stripped)
                    self.assertEqual(status, 0)
                    self.assertRegex(error, f"has 3[23] MiB of static arrays, which stay local because {why}")

    def test_a_program_whose_working_set_does_not_fit_is_told_what_would_fit(self):
        for local, mib, wanted in (("8M", 16, r"8.0 MiB: .* --local 1[89]M$"),
                                   ("15%", 88, r"15% \(now 64 MiB\): .* --local (9\d% \(or )?(99|10\d)M\)?$")):
            with self.subTest(local=local):
                options = ["--local", local, "--apart", "network", "--memory", "256M"]
                job = self.start("far", *options, "--", PYTHON, "-c", SCATTERED, mib, stdin=subprocess.PIPE)
                job.error.wait_for("the program's working set does not fit into --local " + wanted)
                job.process.stdin.close()
                status, output, error = job.end()
                self.assertEqual((status, output), (0, ""))
                self.assertEqual(error.count("working set"), 1)

    def test_a_program_that_streams_once_over_its_memory_is_not_told_that_it_does_not_fit(self):
        job = self.start("far", "--local", "10M", "--apart", "network", "--memory", "1G", "--", PYTHON, "-c", STREAMING)
        status, output, error = job.end()
        self.assertEqual((status, output), (0, "ok\n"))
        self.assertNotIn("working set", error)

    def test_servers_leave_room_for_local_data_by_default(self):
        if self.user is not None:
            self.skipTest("only root can move a process to another control group")
        code = "import random; x = [random.randbytes(8 << 20) for turn in range(64)]"
        for options in (["--local", "50%"], ["--local", "10%", "--store", "lz4"], ["--local", "150M"]):
            with self.subTest(options=options), memory_group(300 << 20) as enter:
                status, _, error = self.run_job("far", *options, "--", PYTHON, "-c", code, preexec_fn=enter)
                self.assertEqual(status, 137)
                self.assertRegex(error, r"^tonari far: out of memory: the servers' \d+ MiB are full")
                self.assertNotIn("killer", error)

    def test_the_limit_of_a_control_group_is_named_if_servers_are_to_lend_more(self):
        if self.user is not None:
            self.skipTest("only root can move a process to another control group")
        with memory_group(300 << 20) as enter:
            status, _, error = self.run_job("far", "--memory", "400M", "--", "true", preexec_fn=enter)
            _, said, _ = self.run_job("info", preexec_fn=enter)
        self.assertEqual((status, error), (2, "tonari far: --memory 400 MiB: the control group of this process may use "
                                              "no more than 300 MiB; lend less\n"))
        self.assertRegex(said, r"memory +\d+ [GT]iB, 300 MiB available: the limit of this control group\n")

    def test_a_kill_by_the_out_of_memory_killer_is_named(self):
        if self.user is not None:
            self.skipTest("only root can move a process to another control group")
        with memory_group(400 << 20) as enter:
            code = "import os; x = bytearray(1200 << 20); os._exit(0)"
            status, _, error = self.run_job("far", "--local", "100%", "--memory", "32M", "--", PYTHON, "-c", code,
                                            preexec_fn=enter)
        self.assertEqual(status, 137)
        self.assertRegex(error, r"the kernel's out-of-memory killer ended .*no more than 400 MiB.*--store lz4")

    def test_a_kill_of_a_server_by_the_out_of_memory_killer_is_named(self):
        if self.user is not None:
            self.skipTest("only root can move a process to another control group")
        for store, rank, remedy in (("ram", 1, "--store lz4"), ("lz4", 1, "--servers"), ("ram", 0, "--store lz4")):
            with self.subTest(store=store, rank=rank), memory_group(400 << 20) as enter:
                code = "x = bytearray(32 << 20); print('ready', flush=True); input(); x = bytearray(1200 << 20); input()"
                job = self.start("far", "--local", "100%", "--memory", "32M", "--store", store, "--", PYTHON, "-c", code,
                                 stdin=subprocess.PIPE, preexec_fn=enter)
                job.output.wait_for("ready")
                with open(f"/proc/{self.server_of(job, rank)}/oom_score_adj", "w") as file:
                    file.write("1000")
                job.process.stdin.write("\n")
                job.process.stdin.flush()
                status, _, error = job.end()
                job.process.stdin.close()
                self.assertEqual(status, 137, error)
                self.assertRegex(error, "the kernel's out-of-memory killer ended .*no more than 400 MiB.*" + remedy)
                self.assertNotIn("stand above", error)


class EndingsOfAnOrdinaryUser(Endings):
    user = NOBODY


class Children(FarTest):
    def far(self, *words):
        status, output, error = self.run_job("far", "--stats=json", *words)
        self.assertEqual(status, 0, error)
        return output, json.loads(error)

    def test_the_program_that_a_wrapper_starts_or_executes_has_far_memory(self):
        for wrapper in (["env", "A=b"], ["nice"], ["sh", "-c", 'exec "$@"', "sh"], ["env", "nice"],
                        ["timeout", "300"], ["sh", "-c", '"$@"; exit $?', "sh"]):
            for options in ([], ["--children"]):
                with self.subTest(wrapper=wrapper, options=options):
                    output, found = self.far(*options, "--local", "16M", "--", *wrapper, TORTURE, "1", "2", "10", "64")
                    self.assertEqual(output, "ok\n")
                    self.assertGreater(found["bytes_out"], 50 << 20)
                    self.assertEqual(found["processes"], 1)

    def test_programs_that_a_wrapper_starts_in_turn_have_far_memory_in_turn(self):
        code = '"$@" && "$@"'
        output, found = self.far("--local", "16M", "--", "sh", "-c", code, "sh", TORTURE, "1", "2", "10", "64")
        self.assertEqual((output, found["processes"]), ("ok\nok\n", 2))
        self.assertGreater(found["bytes_out"], 100 << 20)

    def test_children_have_far_memory_of_their_own(self):
        for options in (["--local", "20%"], ["--local", "24M", "--store", "lz4"],
                        ["--local", "16M", "--apart", "network"]):
            with self.subTest(options=options):
                output, found = self.far("--children", *options, "--memory", "512M", "--", CHILDREN, "tree", "2", "16")
                self.assertEqual(output, "ok\n")
                self.assertEqual(found["processes"], 7)
                self.assertGreater(found["bytes_out"], 7 * 8 << 20)
                self.assertEqual((found["failures"], found["stored_bytes"]), (0, 0))

    def test_children_of_a_program_with_far_memory_have_only_local_memory_without_the_option(self):
        code = "import subprocess, sys; x = bytearray(64 << 20); sys.exit(subprocess.run(sys.argv[1:]).returncode)"
        output, found = self.far("--", PYTHON, "-c", code, TORTURE, "1", "2", "10", "64")
        self.assertEqual((output, found["processes"]), ("ok\n", 1))
        self.assertLess(found["in_use_peak_bytes"], 80 << 20)

    def test_children_that_outlive_their_parent_are_waited_for(self):
        output, found = self.far("--children", "--local", "16M", "--", CHILDREN, "left", "64")
        self.assertEqual((output, found["processes"]), ("left ok\n", 2))

    def start_waiting(self):
        job = self.start("far", "--children", "--local", "16M", "--", CHILDREN, "waiting", "64", stdin=subprocess.PIPE)
        job.output.wait_for("ready")
        return job

    def test_children_end_when_the_keeper_dies(self):
        job = self.start_waiting()
        os.kill(self.server_of(job, 0), signal.SIGKILL)
        status, output, error = job.end()
        self.assertEqual((status, output), (137, "ready\n"))
        self.assertIn("the keeper has ended", error)  # JobTest checks that no process is left

    def test_children_end_when_a_server_dies(self):
        job = self.start_waiting()
        os.kill(self.server_of(job, 1), signal.SIGKILL)
        status, output, error = job.end()
        self.assertEqual((status, output), (137, "ready\n"), error)


class ChildrenOfAnOrdinaryUser(Children):
    user = NOBODY


class Deaths(FarTest):
    def test_losing_the_only_server_with_data_ends_the_program(self):
        job = self.start_torture("--local", "16M", "--apart", "network", "--memory", "256M")
        os.kill(self.server_of(job, 1), signal.SIGKILL)
        start = time.monotonic()
        status, _, error = job.end()
        self.assertEqual(status, 137)
        self.assertRegex(error, r"tonari far: (a server|server 1) died and .*--replicas 2")
        self.assertLess(time.monotonic() - start, 60)

    def test_losing_one_server_of_two_replicas_loses_no_data(self):
        options = ["--servers", "2", "--replicas", "2", "--memory", "256M", "--progress"]
        for store in ("ram", "lz4"):
            with self.subTest(store=store):
                job = self.start_torture("--local", "16M", "--apart", "network", "--store", store, *options)
                os.kill(self.server_of(job, 2), signal.SIGKILL)
                job.error.wait_for("faults", len(job.error.seen) + 2)  # it goes on for a while without that server
                job.process.stdin.close()
                status, output, error = job.end()
                self.assertEqual((status, output), (0, "ready\nok\n"), error)
                self.assertRegex(error, r"in the last second \d+ faults, waits of \d+ ms, 99 % within \S+ us, "
                                        r"\d+ blocks read ahead used")

    def test_losing_any_server_at_any_time_loses_no_data(self):
        for seed in range(1, 1 + 2 * SOAK):
            chance = random.Random(seed)
            store = chance.choice(("ram", "lz4"))
            with self.subTest(seed=seed, store=store):
                options = ["--servers", "3", "--replicas", "2", "--memory", "256M", "--apart", "network",
                           "--store", store]
                job = self.start_torture("--local", "16M", *options, seed=seed)
                time.sleep(chance.uniform(0, 0.5))  # any moment will do
                os.kill(self.server_of(job, chance.randint(1, 3)), signal.SIGKILL)
                time.sleep(chance.uniform(0, 0.5))
                job.process.stdin.close()
                status, output, error = job.end()
                self.assertEqual((status, output), (0, "ready\nok\n"), error)


if __name__ == "__main__":
    unittest.main()
