"""Programs of other projects: where scripts/mpi has put their sources, building them with an MPI, and starting them."""

import dataclasses
import fcntl
import hashlib
import inspect
import os
import pathlib
import shutil
import subprocess
import sys
import time

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "tonari" / "mpi"
PYTHON = CACHE / "python" / "bin" / "python"


@dataclasses.dataclass
class Mpi:
    """An MPI that programs are built with and run by."""

    name: str
    cc: str
    cxx: str
    start: list  # the command that starts ranks, without their number and the program
    environment: dict  # of the program
    identity: str  # changes when programs must be built again

    def run(self, ranks, command, folder, seconds=300, **options):
        """Returns what a program of some ranks prints, with its errors. Ends the test if the program fails."""
        words = [*self.start, "-n", str(ranks), *map(str, command)]
        result = subprocess.run(words, cwd=folder, env=self.environment, stdout=subprocess.PIPE, timeout=seconds,
                                stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", check=False, **options)
        if result.returncode != 0:
            sys.exit(f"{' '.join(words)} exits with {result.returncode}:\n{result.stdout}")
        return result.stdout


def tonari(command, *options):
    """Returns tonari's MPI; `options` are of mpiexec."""
    commands = subprocess.run([command, "env", "--directory"], check=True, capture_output=True, text=True).stdout.strip()

    def ask(word):
        return subprocess.run([f"{commands}/mpicc", f"-showme:{word}"], check=True, capture_output=True,
                              text=True).stdout.strip()

    # The path of the library is stronger than the one in the program, which may be of the build tree that built it.
    environment = {**os.environ, "PATH": f"{commands}:{os.environ['PATH']}", "LD_LIBRARY_PATH": ask("libdirs"),
                   "MPICC": f"{commands}/mpicc", "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
    return Mpi("tonari", f"{commands}/mpicc", f"{commands}/mpicxx", [f"{commands}/mpiexec", *options], environment,
               pathlib.Path(ask("incdirs"), "mpi.h").read_text())


def open_mpi():
    """Returns Debian's Open MPI, or None if it is not installed."""
    if not shutil.which("mpicc.openmpi") or not shutil.which("mpirun.openmpi"):
        print("Open MPI is not installed: nothing is compared with it")
        return None
    version = subprocess.run(["mpicc.openmpi", "--showme:version"], check=True, capture_output=True, text=True).stdout
    return Mpi("openmpi", "mpicc.openmpi", "mpicxx.openmpi",
               ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"],
               {**os.environ, "OPENBLAS_NUM_THREADS": "1"}, version)


def require(project):
    """Ends the test as skipped if `scripts/mpi` has not fetched a project."""
    if not (CACHE / project).exists() or not PYTHON.exists():
        print(f"{project} is not there: `make test-mpi` fetches what it needs, `make soak` also LAMMPS")
        sys.exit(77)


def built(project, mpi, recipe):
    """Returns a folder with a copy of a project's source, built with an MPI by `recipe(folder, mpi)`.

    The folder is kept for later runs of this and of other build trees, until newer ones have replaced it.
    """
    require(project)
    key = hashlib.sha256((mpi.identity + inspect.getsource(recipe)).encode()).hexdigest()[:12]
    folder = CACHE / "built" / f"{project}-{mpi.name}-{key}"
    folder.parent.mkdir(exist_ok=True)
    with open(folder.with_suffix(".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            part = folder.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            shutil.copytree(CACHE / project, part, symlinks=True)
            recipe(part, mpi)
            part.rename(folder)
    folder.touch()
    remove_old_builds(folder.parent, f"{project}-{mpi.name}-")
    return folder


def remove_old_builds(parent, beginning, kept=4):
    """Removes the builds of a project with an MPI, except the last ones and builds that were used a short time ago."""
    last_use = lambda folder: folder.stat().st_mtime
    folders = [each for each in parent.glob(f"{beginning}*") if each.is_dir() and not each.suffix]
    for folder in sorted(folders, key=last_use, reverse=True)[kept:]:
        if time.time() - last_use(folder) < 7200:
            continue  # a test of another build tree may be running it
        with open(folder.with_suffix(".lock"), "w", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue  # another test builds it
            shutil.rmtree(folder, ignore_errors=True)


def shell(folder, *command, **environment):
    """Returns what a command prints. Ends the test if it fails."""
    result = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} fails:\n{result.stdout[-4000:]}")
    return result.stdout
