"""Output and input of ranks: lines stay whole, streams stay apart, rank 0 reads."""

import os
import pty
import re
import signal
import subprocess
import unittest

from harness.jobs import ACTOR, PATIENCE, TONARI, JobTest, eventually, processes_marked, state_of


class Output(JobTest):
    def test_standard_output_and_standard_error_stay_separate(self):
        status, output, error = self.actors(2, "say", "to output", "error", "to error")
        self.assertEqual((status, output, error), (0, 2 * "to output\n", 2 * "to error\n"))

    def check_chatter(self, lines, ranks, count, prefix):
        seen = {rank: 0 for rank in range(ranks)}
        for line in lines:
            match = re.fullmatch(prefix + r"(\d+):(\d+):(\w*)", line)
            self.assertTrue(match, line)
            rank, number = int(match[match.lastindex - 2]), int(match[match.lastindex - 1])
            filling = match[match.lastindex]
            self.assertEqual(number, seen[rank], "lines of a rank keep their order")
            self.assertEqual(filling, chr(ord("a") + rank % 26) * (number * 37 % 500))
            seen[rank] += 1
        self.assertEqual(set(seen.values()), {count})

    def test_lines_of_chatty_ranks_stay_whole(self):
        status, output, _ = self.actors(8, "chatter", 2000)
        self.assertEqual(status, 0)
        self.check_chatter(output.splitlines(), 8, 2000, "")

    def test_tagged_lines_stay_whole(self):
        status, output, _ = self.actors(8, "chatter", 500, options=["--tag-output"])
        self.assertEqual(status, 0)
        for line in output.splitlines():
            self.assertRegex(line, r"^\[(\d+)\] \1:")
        self.check_chatter([line.split("] ", 1)[1] for line in output.splitlines()], 8, 500, "")

    def test_lines_stay_whole_when_both_streams_go_to_one_pipe(self):
        read, write = os.pipe()
        program = ("i=0; "
                   "while [ $i -lt 300 ]; do echo out $TONARI_RANK $i; echo err $TONARI_RANK $i >&2; i=$((i+1)); done")
        process = subprocess.Popen([TONARI, "run", "-n", "4", "sh", "-c", program], stdout=write, stderr=write,
                                   env=self.environment())
        os.close(write)
        with open(read) as file:
            lines = file.read().splitlines()
        self.assertEqual(process.wait(), 0)
        self.assertEqual(len(lines), 4 * 300 * 2)
        for line in lines:
            self.assertRegex(line, r"^(out|err) \d \d+$")

    def test_a_last_line_without_newline_is_delivered(self):
        self.assertEqual(self.run_job("run", "-n", "1", "printf", "no newline")[1], "no newline")

    def test_last_lines_without_newline_of_several_ranks_do_not_mix(self):
        output = self.run_job("run", "-n", "3", "printf", "no newline")[1]
        self.assertEqual(output.split("\n"), 3 * ["no newline"])

    def test_a_line_of_a_megabyte_arrives_complete(self):
        output = self.run_job("run", "-n", "1", "sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x; echo")[1]
        self.assertEqual(output, 1000000 * "x" + "\n")

    def test_a_reader_of_the_output_that_closes_its_end_ends_the_job(self):
        first = subprocess.run(f"{TONARI} run -n 2 yes | head -n 1", shell=True, capture_output=True, text=True,
                               env=self.environment(), timeout=30)
        self.assertEqual((first.stdout, first.stderr), ("y\n", ""))

    def test_a_reader_of_the_output_that_stops_reading_blocks_neither_status_nor_end(self):
        read, write = os.pipe()
        job = self.start("run", "-n", "2", "sh", "-c", "echo up >&2; exec yes", stdout=write)
        os.close(write)
        job.error.wait_for("up", 2)
        eventually(lambda: all(state_of(pid) == "S" for pid in processes_marked(self._mark)), "all pipes are full")
        self.assertEqual(self.phases(job), ["absent", "absent"])
        job.signal(signal.SIGTERM)
        eventually(lambda: processes_marked(self._mark) == [job.pid], "the ranks have ended")
        job.signal(signal.SIGTERM)  # does not wait for a reader any longer
        self.assertEqual(job.process.wait(timeout=30), 143)
        os.close(read)


class LostOutput(JobTest):
    """Standard output that cannot be written is an error of the job, not of the rank that wrote."""

    full = "cannot write standard output: No space left on device"

    def setUp(self):
        super().setUp()
        self.target = open("/dev/full", "w")
        self.addCleanup(self.target.close)

    def check(self, job, status, error):
        self.assertEqual((job.process.wait(timeout=PATIENCE), job.error.rest()), (status, error))

    def test_output_to_a_full_disk_is_reported_once(self):
        self.check(self.start("run", "-n", "2", "echo", "x", stdout=self.target), 1, f"tonari: {self.full}\n")

    def test_output_to_a_full_disk_ends_ranks_that_keep_writing(self):
        self.check(self.start("run", "-n", "2", "yes", stdout=self.target), 1,
                   f"tonari: {self.full}\n")

    def test_output_to_a_full_disk_ends_ranks_that_have_joined(self):
        job = self.start_actors(3, "join", "only", 1, "say", "lost", "wait", stdout=self.target)
        self.check(job, 1, f"tonari: {self.full}\n")

    def test_output_to_a_full_disk_ends_ranks_that_do_not_write(self):
        program = "test $TONARI_RANK = 0 && echo x; exec sleep 1000"
        self.check(self.start("run", "-n", "2", "sh", "-c", program, stdout=self.target), 1,
                   f"tonari: {self.full}\n")

    def test_output_to_a_closed_descriptor_is_reported(self):
        job = self.start("run", "-n", "1", "echo", "x", stdout=None, preexec_fn=lambda: os.close(1))
        self.check(job, 1, "tonari: cannot write standard output: it is closed\n")

    def test_a_closed_output_is_no_error_if_ranks_write_only_to_standard_error(self):
        ended = subprocess.run([TONARI, "run", "-n", "2", "sh", "-c", "echo x >&2"], stderr=subprocess.DEVNULL,
                               env=self.environment(), preexec_fn=lambda: os.close(1), timeout=PATIENCE)
        self.assertEqual(ended.returncode, 0)

    def test_a_full_disk_is_no_error_if_no_rank_writes(self):
        self.check(self.start("run", "-n", "2", "true", stdout=self.target), 0, "")


class Input(JobTest):
    def test_standard_input_goes_to_rank_0_alone(self):
        job = self.start_actors(3, "read", stdin=subprocess.PIPE, options=["--tag-output"])
        job.process.stdin.write("hello\n")
        job.process.stdin.close()
        status, output, _ = job.end()
        self.assertEqual((status, sorted(output.splitlines())), (0, ["[0] read hello", "[1] no input", "[2] no input"]))


class Terminal(JobTest):
    """`tonari run` in a terminal of its own: a shell's foreground job."""

    def start_in_terminal(self, *arguments):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(TONARI, [TONARI, *map(str, arguments)], self.environment())
        return pid, terminal

    def read_until(self, terminal, text, times=1):
        seen = ""
        while seen.count(text) < times:
            seen += os.read(terminal, 4096).decode()
        return seen

    def read_to_end(self, terminal):
        seen = ""
        try:
            while piece := os.read(terminal, 4096).decode():
                seen += piece
        except OSError:  # all processes at the terminal have ended
            pass
        os.close(terminal)
        return seen

    def test_prompts_are_shown_at_a_terminal_before_input_is_read(self):
        program = "test $TONARI_RANK = 1 || { printf 'name? '; read NAME; echo hello $NAME; }"
        pid, terminal = self.start_in_terminal("run", "-n", "2", "sh", "-c", program)
        self.read_until(terminal, "name? ")
        os.write(terminal, b"you\n")
        self.assertIn("hello you", self.read_to_end(terminal))
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_sigterm_ends_processes_that_a_wrapper_started_at_a_terminal(self):
        pid, terminal = self.start_in_terminal("run", "-n", "2", "sh", "-c", "echo up; sleep 1000; true")
        self.read_until(terminal, "up", 2)
        os.kill(pid, signal.SIGTERM)
        self.read_to_end(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 143)

    def test_control_c_reaches_each_rank_once_and_a_second_one_kills(self):
        pid, terminal = self.start_in_terminal("run", "-n", "3", ACTOR, "catch", 2, "wait")
        self.read_until(terminal, "waiting", 3)
        os.write(terminal, b"\x03")
        self.assertEqual(self.read_until(terminal, "caught 2", 3).count("caught 2"), 3)
        os.write(terminal, b"\x03")
        self.assertLessEqual(self.read_to_end(terminal).count("caught 2"), 1, "rank 0 may have it from the terminal")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 137)

    def test_control_z_stops_all_processes_and_resuming_resumes_them(self):
        pid, terminal = self.start_in_terminal("run", "-n", "2", ACTOR, "say", "{rank} is {pid}", "wait")
        seen = self.read_until(terminal, "waiting", 2)
        other = int(re.search(r"1 is (\d+)", seen)[1])
        os.write(terminal, b"\x1a")
        # Not rank 0: no shell stands behind this terminal, and then the kernel lets Ctrl-Z stop nothing by itself.
        for process in (pid, other):
            eventually(lambda: state_of(process) == "T", f"process {process} is stopped")
        os.kill(pid, signal.SIGCONT)
        for process in (pid, other):
            eventually(lambda: state_of(process) == "S", f"process {process} goes on")
        os.kill(pid, signal.SIGTERM)
        self.read_to_end(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 143)


if __name__ == "__main__":
    unittest.main()
