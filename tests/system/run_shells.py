"""Manual pages, and completion in shells, as the build generates them from the table behind --help."""

import glob
import os
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from harness.jobs import BIN, HAS_BENCHMARKS, PATIENCE, TONARI

SHARE = os.path.join(BIN, "..", "share")
MANUAL = os.path.join(SHARE, "man", "man1")
BASH = os.path.join(SHARE, "bash-completion", "completions", "tonari")
ZSH = os.path.join(SHARE, "zsh", "site-functions", "_tonari")
FISH = os.path.join(SHARE, "fish", "vendor_completions.d", "tonari.fish")


def run(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, timeout=120, **options)


def commands_of(*words):
    """The names below the first heading of a help text that lists commands."""
    found = re.search(r"\n(?:Commands|Benchmarks):\n((?:  .*\n| {24}.*\n)+)", run(TONARI, *words, "--help").stdout)
    return re.findall(r"(?m)^  (\S+)", found[1])


class Generated(unittest.TestCase):
    def setUp(self):
        if not os.path.isdir(MANUAL):
            self.skipTest("this build generates neither manual pages nor completion")

    def need(self, program, package):
        if shutil.which(program) is None:
            self.skipTest(f"{program} is not installed: apt-get install {package}")


class ManualPages(Generated):
    def test_each_command_and_benchmark_has_a_manual_page(self):
        if not HAS_BENCHMARKS:
            self.skipTest("the benchmarks are not built")
        names = {"tonari.1", *(f"tonari-{name}.1" for name in commands_of())}
        benchmarks = {f"tonari-bench-{name}.1" for name in commands_of("bench")}
        self.assertLessEqual({"tonari-run.1", "tonari-far.1", "tonari-bench.1"}, names)
        self.assertIn("tonari-bench-pingpong.1", benchmarks)
        self.assertEqual(names | benchmarks, set(os.listdir(MANUAL)))

    def test_manual_pages_render_without_warnings(self):
        self.need("groff", "groff-base")
        for page in sorted(glob.glob(os.path.join(MANUAL, "*"))):
            with self.subTest(page=os.path.basename(page)):
                shown = run("groff", "-ww", "-man", "-Tutf8", "-z", page)
                self.assertEqual((shown.returncode, shown.stdout, shown.stderr), (0, "", ""))

    def test_manual_pages_contain_the_text_of_help(self):
        self.need("groff", "groff-base")
        for words in (["run"], ["far"], *([["bench", "pingpong"]] if HAS_BENCHMARKS else [])):
            with self.subTest(words=words):
                page = os.path.join(MANUAL, f"{'-'.join(['tonari', *words])}.1")
                rendered = run("groff", "-man", "-Tascii", "-P-c", "-P-b", "-P-o", "-P-u", page).stdout
                squeezed = "".join(rendered.split()).lower()
                for line in run(TONARI, *words, "--help").stdout.splitlines():
                    text = re.sub(r"^(Usage|[A-Z][A-Za-z ]*):", "", line).replace("`", "")
                    self.assertIn("".join(text.split()).lower(), squeezed)

    def test_manual_pages_have_the_date_of_source_date_epoch(self):
        with tempfile.TemporaryDirectory() as folder:
            made = run(TONARI, "generate", "man", os.path.join(folder, "made"),
                       env={**os.environ, "SOURCE_DATE_EPOCH": "86400"})
            self.assertEqual((made.returncode, made.stderr), (0, ""))
            with open(os.path.join(folder, "made", "tonari.1")) as file:
                self.assertIn('"1970-01-02"', file.read())
            self.assertEqual(run(TONARI, "generate", "man", "/proc/none").returncode, 2)


class Completion(Generated):
    def check_functions(self, complete):
        """`complete` returns the words that the shell's functions offer at the end of a line."""
        self.assertEqual(complete("tonari ru"), {"run"})
        self.assertEqual(complete("tonari "), set(commands_of()))
        self.assertEqual(complete("tonari help st"), {"status"})
        self.assertEqual(complete("tonari run --tag"), {"--tag-output"})
        self.assertEqual(complete("tonari run -np 4 --bind "), {"core", "none"})
        self.assertEqual(complete("tonari run --tag-output --bind c"), {"core"})
        if HAS_BENCHMARKS:
            self.assertEqual(complete("tonari bench pingp"), {"pingpong"})
            self.assertEqual(complete("tonari bench pingpong --rou"), {"--rounds"})
        self.assertNotIn("--bind", complete("tonari run ls --b"))

    def check_typing(self, *shell):
        """Types a line with tabs into a shell at a terminal, where `tonari` prints what it is given."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execvpe(shell[0], shell, {"PATH": os.environ["PATH"], "TERM": "dumb", "HOME": "/nonexistent"})
        self.addCleanup(os.close, terminal)
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        self.read_until(terminal, "READY")
        os.write(terminal, b"tonari run -np 2 --bind c\t --tag\t x\n")
        self.read_until(terminal, r"GOT<run -np 2 --bind core --tag-output x>")

    def read_until(self, terminal, text):
        seen = ""
        end = time.monotonic() + PATIENCE
        while text not in seen:
            ready, _, _ = select.select([terminal], [], [], max(0, end - time.monotonic()))
            self.assertTrue(ready, seen)
            seen += os.read(terminal, 4096).decode(errors="replace")

    def test_completion_offers_the_right_words_in_bash(self):
        self.assertEqual(run("bash", "-n", BASH).stderr, "")

        def complete(*words):
            script = f"""
                source {BASH}
                compopt() {{ :; }}  # works only while a key is handled
                COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}
                _tonari
                printf '%s\\n' "${{COMPREPLY[@]}}"
            """
            ended = run("bash", "--norc", "-c", script)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            return set(ended.stdout.split())

        self.check_functions(lambda line: complete(*line.split(" ")))
        self.assertLessEqual({"base64", "basename"}, complete("tonari", "run", "-n", "4", "base"))
        # Bash divides words at "=", unless the user has changed COMP_WORDBREAKS.
        self.assertEqual(complete("tonari", "run", "--bind", "=", "c"), {"core"})
        self.assertEqual(complete("tonari", "run", "--bind", "="), {"core", "none"})
        self.assertEqual(complete("tonari", "run", "--bind=c"), {"--bind=core"})
        self.assertEqual(complete("tonari", "far", "--stats", "=", "j"), {"json"})
        self.assertEqual(complete("tonari", "far", "--stats", "=", "json", "--lo"), {"--local"})

    def test_completion_by_tabs_works_in_bash_at_a_terminal(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(f"source {BASH}\ntonari() {{ echo \"GOT<$*>\"; }}\nPS1=READY\n")
            file.flush()
            self.check_typing("bash", "--rcfile", file.name, "-i")

    def test_completion_offers_the_right_words_in_zsh(self):
        self.need("zsh", "zsh")
        self.assertEqual(run("zsh", "-n", ZSH).stderr, "")
        with open(ZSH) as file:
            self.assertEqual(file.readline(), "#compdef tonari\n")

        def complete(line):
            # In place of zsh's own functions, which work only while a key is handled.
            script = f"""
                print_matches() {{
                    local each
                    for each; do [[ $each == $words[CURRENT]* ]] && print -r -- $each; done
                    true
                }}
                compadd() {{ shift; print_matches "$@"; }}
                _describe() {{ local name=${{@[-1]}}; print_matches "${{(@)${{(@P)name}}%%:*}}"; }}
                _normal() {{ true; }}
                words=({shlex.join(line.split(" "))}); CURRENT=$#words
                source {ZSH}
            """
            ended = run("zsh", "-f", "-c", script)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            return set(ended.stdout.split())

        self.check_functions(complete)

    def test_completion_by_tabs_works_in_zsh_at_a_terminal(self):
        self.need("zsh", "zsh")
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, ".zshrc"), "w") as file:
                file.write(f"fpath=({os.path.dirname(ZSH)} $fpath)\nautoload -Uz compinit; compinit -u -D\n"
                           "tonari() { echo \"GOT<$*>\" }\nPS1=READY\n")
            self.check_typing("env", f"ZDOTDIR={folder}", "zsh", "-d", "-i")

    def test_completion_offers_the_right_words_in_fish(self):
        self.need("fish", "fish")
        self.assertEqual(run("fish", "--no-config", "--no-execute", FISH).stderr, "")

        def complete(line):
            ended = run("fish", "--no-config", "-c", f"source {FISH}; complete -C {shlex.quote(line)}")
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            return {word.split("\t")[0] for word in ended.stdout.splitlines()}

        self.check_functions(complete)
        self.assertLessEqual({"base64", "basename"}, complete("tonari run -n 4 base"))
        self.assertLessEqual({"base64", "basename"}, complete("tonari far -- base"))


if __name__ == "__main__":
    unittest.main()
