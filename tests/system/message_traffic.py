"""Messages between processes: all sizes, random traffic, bad buffers, malformed heads, forks, deaths at any moment."""

import os
import signal
import unittest

from harness.jobs import PROGRAMS, JobTest, seeds

SETTINGS = {
    "by_process_vm": {},
    "in_pieces": {"TONARI_DIRECT_COPIES": "off"},
    "without_service_thread": {"TONARI_SERVICE_THREAD": "off"},
    "with_little_room": {"TONARI_RING_SLOTS": "64", "TONARI_SPLIT": "0", "TONARI_CHUNK_BYTES": "24K"},
}


class Messages(JobTest):
    def run_program(self, ranks, name, *arguments, status=0, done=None, **settings):
        program = os.path.join(PROGRAMS, name)
        ended, output, error = self.run_job("run", "-n", ranks, program, *arguments, env=self.environment(**settings))
        self.assertEqual(ended, status, error)
        self.assertEqual(output.count("did it"), ranks if done is None else done, error)
        return error

    def test_bad_buffers_are_reported_to_both_sides_and_harm_no_rank(self):
        self.run_program(2, "message_faults")

    def test_messages_longer_than_4_gib_arrive_whole(self):
        needed = 1 << 20  # kB: twice 67 MiB, their page tables, and some for other programs
        with open("/proc/meminfo") as file:
            available = next(int(line.split()[1]) for line in file if line.startswith("MemAvailable:"))
        if available < needed:
            self.skipTest(f"{available} kB of memory are available, {needed} are needed")
        for name in ("by_process_vm", "in_pieces"):
            with self.subTest(name):
                self.run_program(2, "message_large", **SETTINGS[name])

    def test_a_sender_that_waits_for_room_says_so(self):
        environment = self.environment(TONARI_WARN_SECONDS="1", TONARI_UNEXPECTED_BYTES="64K")
        job = self.start("run", "-n", "2", os.path.join(PROGRAMS, "message_flood"), env=environment)
        job.error.wait_for(r"^tonari\[[01]\]: has waited 1 s to send to rank [01], whose unreceived messages have "
                           r"reached their limit: .*TONARI_UNEXPECTED_BYTES")
        job.signal(signal.SIGTERM)
        self.assertEqual(job.end()[0], 143)

    def test_a_rank_without_memory_for_a_message_says_so_and_ends(self):
        program = os.path.join(PROGRAMS, "message_exhaustion")
        environment = self.environment(TONARI_UNEXPECTED_BYTES="1G")
        ended, output, error = self.run_job("run", "-n", "2", program, env=environment)
        if "cannot be tried" in output:
            self.skipTest("sanitizers need the address space that this test takes away")
        self.assertEqual(ended, 128 + signal.SIGABRT, error)
        self.assertRegex(error, r"(?m)^tonari: no memory is left for an unexpected message.*TONARI_UNEXPECTED_BYTES")

    def test_wrong_addresses_from_a_peer_harm_no_rank(self):
        self.run_program(2, "message_lies")

    def test_forked_children_leave_their_parents_messages_alone(self):
        self.run_program(2, "message_forks")

    def test_a_death_at_any_moment_lets_the_other_ranks_finish(self):
        for seed in seeds(6):
            with self.subTest(TONARI_SEED=seed):
                ranks = 3 + seed % 4
                self.run_program(ranks, "message_traffic", "storm", seed, status=128 + signal.SIGKILL, done=ranks - 1)


def add(name, settings):
    def exchange(self):
        self.run_program(2, "message_traffic", "exchange", **settings)

    def traffic(self):
        for seed in seeds(2):
            with self.subTest(TONARI_SEED=seed):
                self.run_program(2 + 6 * (seed % 2), "message_traffic", "traffic", seed, **settings)
                self.run_program(2, "message_traffic", "threads", seed, **settings)

    setattr(Messages, f"test_messages_of_every_size_arrive_{name}", exchange)
    setattr(Messages, f"test_random_messages_arrive_{name}", traffic)


for each in SETTINGS.items():
    add(*each)

if __name__ == "__main__":
    unittest.main()
