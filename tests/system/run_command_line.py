"""Features of all commands: help, the version, suggestions for mistyped words, errors of standard output."""

import os
import subprocess
import unittest

from harness.jobs import HAS_BENCHMARKS, TONARI, JobTest


def tonari(*arguments, **options):
    return subprocess.run([TONARI, *arguments], capture_output=True, text=True, timeout=60, **options)


def built(commands):
    """Leaves out the commands of benchmarks that were not built."""
    return [words for words in commands if HAS_BENCHMARKS or words[:1] != ["bench"]]


class Help(JobTest):
    def test_the_version_is_printed_by_option_and_by_command(self):
        self.assertRegex(tonari("--version").stdout, r"^tonari \d+\.\d+\.\d+\n$")
        self.assertEqual(tonari("version").stdout, tonari("--version").stdout)

    def test_help_lists_the_commands(self):
        shown = tonari("--help").stdout
        for command in ("run", "far", "bench", "info", "status", "help", "version"):
            self.assertIn(f"\n  {command} ", shown)
            if built([[command]]):
                self.assertIn("Example", tonari(command, "--help").stdout)

    def test_the_command_help_prints_the_same_as_the_option(self):
        for words in built(([], ["run"], ["bench"], ["bench", "pingpong"], ["help"])):
            with self.subTest(words=words):
                shown = tonari("help", *words)
                self.assertEqual((shown.returncode, shown.stderr), (0, ""))
                self.assertEqual(shown.stdout, tonari(*words, "--help").stdout)

    def test_help_fits_80_columns_and_shows_usage_and_examples(self):
        for words in built(([], ["run"], ["info"], ["status"], ["bench"], ["bench", "pingpong"], ["bench", "lu"],
                            ["help"])):
            with self.subTest(words=words):
                shown = tonari(*words, "--help")
                self.assertEqual((shown.returncode, shown.stderr), (0, ""))
                own = " ".join(["tonari", *words])
                self.assertRegex(shown.stdout, rf"(?m)^Usage: {own}( |$)")
                self.assertRegex(shown.stdout, rf"(?m)^Examples:\n  .*{own} ?")
                self.assertLessEqual(max(map(len, shown.stdout.splitlines())), 80)
                self.assertEqual("Without a name" in shown.stdout, words == ["bench"])


class Mistyped(JobTest):
    def refused(self, *words):
        ended = tonari(*words)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr.count("\n")), (2, "", 1), ended.stderr)
        return ended.stderr

    def test_a_mistyped_command_gets_the_nearest_as_suggestion(self):
        self.assertEqual(self.refused("rnu"),
                         "tonari: no command is called 'rnu'; did you mean run? See tonari --help\n")
        self.assertEqual(self.refused("help", "statsu"),
                         "tonari help: no command is called 'statsu'; did you mean status? See tonari --help\n")
        self.assertEqual(self.refused("help", "run", "fast"),
                         "tonari help: tonari run has no commands of its own, such as 'fast'; see tonari run --help\n")

    def test_a_command_unlike_every_other_gets_no_suggestion(self):
        for word in ("walk", "", "generates"):
            self.assertEqual(self.refused(word), f"tonari: no command is called '{word}'; see tonari --help\n")

    def test_a_mistyped_option_gets_the_nearest_as_suggestion(self):
        for words, wrong, meant in ((["run", "--rnaks", "4", "true"], "--rnaks", "--ranks"),
                                    (["far", "--lcoal=20%", "true"], "--lcoal", "--local"),
                                    (["info", "--jsn"], "--jsn", "--json"),
                                    (["run", "-ranks", "4", "true"], "-ranks", "--ranks")):
            self.assertEqual(self.refused(*words), f"tonari {words[0]}: no option is called {wrong}; did you mean "
                                                   f"{meant}? See tonari {words[0]} --help\n")

    def test_an_option_unlike_every_other_gets_no_suggestion(self):
        self.assertEqual(self.refused("run", "--frobnicate", "true"),
                         "tonari run: no option is called --frobnicate; see tonari run --help\n")
        self.assertEqual(self.refused("-x"), "tonari: no option is called -x; see tonari --help\n")


# `info --settings` prints more than stdio's buffer holds, so that the writing fails before the end.
PRINTING = (["--help"], ["help"], ["help", "run"], ["--version"], ["version"], ["info"], ["info", "--settings"],
            ["bench"], ["status"])


class LostOutput(JobTest):
    def test_output_of_any_command_to_a_full_disk_is_an_error(self):
        for words in built(PRINTING):
            with self.subTest(words=words), open("/dev/full", "w") as full:
                ended = subprocess.run([TONARI, *words], stdout=full, stderr=subprocess.PIPE, text=True,
                                       env=self.environment())
                self.assertEqual((ended.returncode, ended.stderr),
                                 (1, "tonari: cannot write standard output: No space left on device\n"))

    def test_output_of_any_command_to_a_closed_descriptor_is_an_error(self):
        for words in built(PRINTING):
            with self.subTest(words=words):
                ended = subprocess.run([TONARI, *words], stderr=subprocess.PIPE, text=True, env=self.environment(),
                                       preexec_fn=lambda: os.close(1))
                self.assertEqual((ended.returncode, ended.stderr),
                                 (1, "tonari: cannot write standard output: it is closed\n"))


if __name__ == "__main__":
    unittest.main()
