#!/usr/bin/env python3
"""Texts for users: of the `tonari` command about programs that use MPI, and of errors."""

import json
import re
import signal
import subprocess
import unittest

from command_test import COMMANDS, CommandTest, setUpModule  # noqa: F401
from harness.jobs import TONARI, eventually


class Telling(CommandTest):
    def test_a_shell_can_evaluate_tonari_env(self):
        script = f'eval "$({TONARI} env)"; for name in mpicc mpicxx mpiexec mpirun; do command -v $name; done; echo "$MPI_HOME"'
        told = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual(told, [*(str(COMMANDS / name) for name in ("mpicc", "mpicxx", "mpiexec", "mpirun")),
                                str(COMMANDS.parent)])

    def test_info_lists_the_functions_that_are_not_supported(self):
        shown = subprocess.run([TONARI, "info", "--mpi"], capture_output=True, text=True, check=True).stdout
        listed = shown.splitlines()[1:]
        told = json.loads(subprocess.run([TONARI, "info", "--mpi", "--json"], capture_output=True, text=True,
                                         check=True).stdout)
        self.assertIn(f"of which these {len(listed)} are not supported", shown)
        self.assertIn("  MPI_Comm_spawn", listed)
        self.assertNotIn("  MPI_Send", listed)
        self.assertEqual([line.strip() for line in listed], (told.get("mpi") or told)["unsupported"])

    def test_a_function_that_is_not_supported_ends_the_job_with_its_name(self):
        program = self.framed("MPI_Comm other; MPI_Comm_spawn(\"x\", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, "
                              "MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);")
        status, output, error = self.mpiexec("-n", 1, program)
        self.assertEqual((status, output), (1, []))
        self.assertIn("MPI_Comm_spawn", error)

    def test_a_buffer_that_is_no_memory_is_blamed_on_its_own_rank(self):
        # Rank WRONG passes a buffer that may not be accessed.
        program = self.framed("""
          enum { bytes = 1 << 22 };
          int wrong = atoi(argv[1]);
          int how = rank == wrong ? PROT_NONE : PROT_READ | PROT_WRITE;
          void* buffer = mmap(NULL, bytes, how, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
          char text[MPI_MAX_ERROR_STRING];
          int code, length;
          MPI_Request request;
          MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
          if (argc > 2 && rank == 0) {
            MPI_Isend(buffer, bytes, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &request);
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
          } else if (argc > 2) {
            MPI_Irecv(buffer, bytes, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &request);
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
          } else if (rank == 0) {
            code = MPI_Send(buffer, bytes, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
          } else {
            code = MPI_Recv(buffer, bytes, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          }
          MPI_Error_string(code, text, &length);
          printf("%d %s\\n", rank, text);
        """, includes=("sys/mman.h",))
        for more in ([], ["started"]):
            sender, receiver = self.mpiexec("-n", 2, program, 0, *more)[1]
            self.assertRegex(sender, "MPI_ERR_BUFFER.*the buffer of 4194304 bytes at 0x.* may be read: check the address")
            self.assertRegex(receiver, "MPI_ERR_BUFFER.*receiving 4194304 bytes from rank 0 with tag 3: the buffer of the "
                                       "sender, rank 0, is not memory that may be read.*of this rank is right")
            sender, receiver = self.mpiexec("-n", 2, program, 1, *more)[1]
            self.assertRegex(sender, "MPI_ERR_BUFFER.*the buffer of the receiver.* is not memory that may be written")
            self.assertRegex(receiver, "MPI_ERR_BUFFER.*the buffer of 4194304 bytes at 0x.* may be written: check the")

    def test_status_shows_the_functions_of_a_program_that_hangs(self):
        program = self.framed("MPI_Recv(&number, 1, MPI_INT, 1 - rank, 7 + rank, MPI_COMM_WORLD, MPI_STATUS_IGNORE);")
        job = self.start_mpiexec("-n", 2, program)
        status = lambda: subprocess.run([TONARI, "status", str(job.pid)], capture_output=True, text=True,
                                        check=False).stdout
        shown = eventually(lambda: re.search(r"(?s).*a circle: .*", status()), "the circle")[0]
        self.assertRegex(shown, r"\n +0 +\d+ +running +MPI_Recv from 1, tag 7 +\d+\.\d s ")
        self.assertRegex(shown, r"\n +1 +\d+ +running +MPI_Recv from 0, tag 8 +\d+\.\d s ")
        job.signal(signal.SIGTERM)
        job.end()

    def test_status_names_started_collectives_and_counts_outstanding_requests(self):
        program = self.framed("""
          MPI_Comm comm, other;
          MPI_Request requests[4] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
          MPI_Comm_dup(MPI_COMM_WORLD, &comm);
          MPI_Comm_set_name(comm, "columns");
          MPI_Comm_dup(MPI_COMM_WORLD, &other);
          MPI_Comm_set_name(other, "rows");
          if (rank == 0) {
            MPI_Ibarrier(comm, &requests[0]);
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
          } else if (rank == 1) {
            MPI_Irecv(&number, 1, MPI_INT, 1, 5, comm, &requests[0]);
            MPI_Irecv(&number, 1, MPI_INT, 2, 6, comm, &requests[2]);
            MPI_Irecv(&number, 1, MPI_INT, 2, 7, comm, &requests[3]);
            MPI_Send(&number, 1, MPI_INT, 1, 5, comm);
            MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
          } else {
            MPI_Ibcast(&number, 1, MPI_INT, 0, other, &requests[1]);
            MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
          }
        """)
        job = self.start_mpiexec("-n", 3, program)
        status = lambda: subprocess.run([TONARI, "status", str(job.pid)], capture_output=True, text=True,
                                        check=False).stdout
        for line in (r"0 +\d+ +running +MPI_Wait of MPI_Ibarrier on columns  ",
                     r"1 +\d+ +running +MPI_Waitall \(2 of 3 left\) from 2, tag 6  ",
                     r"2 +\d+ +running +MPI_Waitall \(1 of 1 left\) of MPI_Ibcast on rows  "):
            eventually(lambda line=line: re.search(rf"\n +{line}", status()), line)
        job.signal(signal.SIGTERM)
        job.end()

    def test_statistics_show_the_depths_of_the_queues(self):
        # Seven messages wait for a receive, because the message behind them is received first; five receives wait for
        # a message, because their messages are sent only after a barrier.
        program = self.framed("""
          int numbers[5];
          MPI_Request requests[5];
          if (rank == 1) MPI_Irecv(&number, 1, MPI_INT, 0, 100, MPI_COMM_WORLD, &requests[0]);
          MPI_Barrier(MPI_COMM_WORLD);
          if (rank == 0) {
            for (int i = 0; i < 7; ++i) MPI_Send(&i, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
            MPI_Send(&number, 1, MPI_INT, 1, 100, MPI_COMM_WORLD);
          } else {
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
            for (int i = 6; i >= 0; --i) MPI_Recv(&number, 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < 5; ++i) MPI_Irecv(&numbers[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]);
          }
          MPI_Barrier(MPI_COMM_WORLD);
          for (int i = 0; i < 5 && rank == 0; ++i) MPI_Send(&i, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
          if (rank == 1) MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
        """)
        status, output, error = self.mpiexec("-n", 2, "--stats", program)
        self.assertEqual((status, output), (0, []))
        lines = error.splitlines()
        # A column's name is at the right end of its numbers. "max" follows the column that it is the maximum of.
        names = [(match.group(), match.end()) for match in re.finditer(r"\S+( \S+)*", lines[0])]
        ranks = [dict(zip([f"{names[i - 1][0]} max" if name == "max" else name for i, (name, _) in enumerate(names)],
                          line.split())) for line in lines[1:3]]
        self.assertEqual([rank["sent"] for rank in ranks], ["13", "0"])
        self.assertEqual((ranks[1]["posted"], ranks[1]["posted max"]), ("0", "5"), error)
        self.assertEqual((ranks[1]["unexpected"], ranks[1]["unexpected max"]), ("0", "7"), error)


if __name__ == "__main__":
    unittest.main()
