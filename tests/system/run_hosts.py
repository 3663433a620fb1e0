"""`tonari run --hosts` builds the command line of the launcher that is installed. These launchers print their
arguments."""

import os
import tempfile
import unittest

from harness.far import NOBODY, faults_told
from harness.jobs import JobTest

LAUNCHER = """#!/bin/sh
case $1 in
--version) echo "{version}"; exit ;;
--mpi=list) echo "{kinds}"; exit ;;
esac
printf '%s\\n' "$@"
/usr/bin/env | /usr/bin/grep -E '^(TONARI_|UCX_|GIVEN=)' | /usr/bin/sort
exit 7
"""

OPEN_MPI_4 = {"mpirun": "mpirun (Open MPI) 4.1.4"}
OPEN_MPI_5 = {"mpirun": "mpirun (Open MPI) 5.0.11"}
MPICH = {"mpirun": "HYDRA build details:"}
ROOT_MAY = {f"{maker}_ALLOW_RUN_AS_ROOT{end}": "1" for maker in ("OMPI", "PRTE") for end in ("", "_CONFIRM")}


class OnHosts(JobTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def install(self, launchers, kinds="pmix"):
        for name, version in launchers.items():
            path = os.path.join(self.folder, name)
            with open(path, "w") as file:
                file.write(LAUNCHER.format(version=version, kinds=kinds))
            os.chmod(path, 0o755)

    def launched(self, *words, **variables):
        """The words and variables that the launcher got."""
        status, output, error = self.launch(*words, **variables)
        self.assertEqual((status, error), (7, ""))
        return output.splitlines()

    def refused(self, *words, **variables):
        status, output, error = self.launch(*words, **variables)
        self.assertEqual((status, output, len(error.splitlines())), (2, "", 1), error)
        return error

    def launch(self, *words, **variables):
        return self.run_job("run", *words, env=self.launching_environment(**ROOT_MAY, **variables))

    def launching_environment(self, **variables):
        """The environment with our launchers alone, outside of a Slurm allocation."""
        plain = {name: value for name, value in self.environment().items()
                 if not name.startswith(("SLURM", "OMPI", "PRTE"))}
        return {**plain, "PATH": self.folder, **variables}

    def test_open_mpi_4_is_called_with_its_options(self):
        self.install(OPEN_MPI_4)
        got = self.launched("--hosts", "a,b", "-n", "5", "--bind", "core", "--tag-output", "./prog", "-n", "x y", "")
        wanted = ["-n", "5", "--host", "a:3,b:2", "--bind-to", "core", "--tag-output", "./prog", "-n", "x y", ""]
        self.assertEqual(got, wanted)

    def test_open_mpi_5_is_called_with_its_options(self):
        self.install(OPEN_MPI_5)
        self.assertEqual(self.launched("--hosts", "2", "-n", "4", "--tag-output", "./prog"),
                         ["-n", "4", "--map-by", "ppr:2:node", "--output", "tag", "./prog"])

    def test_the_default_on_several_hosts_is_one_rank_per_host(self):
        self.install(OPEN_MPI_4)
        self.assertEqual(self.launched("--hosts", "a,b,c", "./prog")[:4], ["-n", "3", "--host", "a:1,b:1,c:1"])
        self.assertEqual(self.launched("--hosts", "3", "./prog")[:4], ["-n", "3", "--map-by", "ppr:1:node"])

    def test_the_mpirun_of_mpich_is_passed_over(self):
        for maker in ("Open MPI", "OpenRTE"):  # version 4 says the latter under any other name than mpirun
            self.install({**MPICH, "mpirun.openmpi": f"mpirun.openmpi ({maker}) 4.1.4"})
            self.assertEqual(self.launched("--hosts", "a", "./prog"), ["-n", "1", "--host", "a:1", "./prog"])

    def test_an_mpirun_of_open_mpi_is_found_behind_another(self):
        self.install(OPEN_MPI_5)
        with tempfile.TemporaryDirectory() as first:
            with open(os.path.join(first, "mpirun"), "w") as file:
                file.write("#!/bin/sh\necho tonari 1.0.0\n")
            os.chmod(os.path.join(first, "mpirun"), 0o755)
            self.assertEqual(self.launched("--hosts", "a", "--tag-output", "./prog", PATH=f"{first}:{self.folder}"),
                             ["-n", "1", "--host", "a:1", "--output", "tag", "./prog"])

    def test_prterun_is_called_if_no_other_launcher_has_pmix(self):
        self.install({**MPICH, "prterun": "prterun (PRRTE) 3.0.1"})
        self.assertEqual(self.launched("--hosts", "a", "--tag-output", "./prog"),
                         ["-n", "1", "--host", "a:1", "--output", "tag", "./prog"])

    def test_srun_is_called_only_inside_an_allocation(self):
        self.install({**OPEN_MPI_4, "srun": ""})
        words = ["--hosts", "a,b", "-n", "3", "--bind", "core", "--tag-output", "./prog", "x"]
        self.assertEqual(self.launched(*words)[0], "-n")
        got = self.launched(*words, SLURM_JOB_ID="1")
        self.assertEqual(got, ["--mpi=pmix", "--nodes=2", "--ntasks=3", "--nodelist=a,b", "--cpu-bind=cores", "--label",
                               "--export=ALL", "./prog", "x"])
        self.assertEqual(self.launched("--hosts", "2", "./prog", SLURM_JOB_ID="1")[1:3], ["--nodes=2", "--ntasks=2"])

    def test_srun_without_pmix_is_passed_over(self):
        self.install({**OPEN_MPI_4, "srun": ""}, kinds="none pmi2")
        self.assertEqual(self.launched("--hosts", "a", "./prog", SLURM_JOB_ID="1")[0], "-n")

    def test_settings_and_variables_are_passed_on_to_the_launcher(self):
        self.install(OPEN_MPI_4)
        got = self.launched("--hosts", "a", "--env", "GIVEN=b, c=d", "--apart", "memory", "./prog",
                            TONARI_SPLIT="16", UCX_TCP_PORT_RANGE="20000-20999")
        names = ("GIVEN", "TONARI_APART", "TONARI_SPLIT", "UCX_TCP_PORT_RANGE")
        wanted = [word for name in names for word in ("-x", name)]
        self.assertEqual(got, ["-n", "1", "--host", "a:1", *wanted, "./prog",
                               "GIVEN=b, c=d", "TONARI_APART=memory", "TONARI_SPLIT=16",
                               "UCX_TCP_PORT_RANGE=20000-20999"])

    def test_variables_of_another_job_are_not_passed_on_to_the_launcher(self):
        self.install(OPEN_MPI_4)
        others = {"TONARI_JOIN": "x", "TONARI_SECRET": "y", "TONARI_RANK": "0", "TONARI_SIZE": "1"}
        got = self.launched("--hosts", "a", "./prog", **others)
        self.assertEqual(got, ["-n", "1", "--host", "a:1", "./prog"])

    def test_a_launcher_that_cannot_say_its_version_is_passed_over(self):
        self.install({**OPEN_MPI_5, "prterun": "prterun (PRRTE) 3.0.1"})
        with open(os.path.join(self.folder, "mpirun"), "w") as file:
            file.write("#!/bin/sh\necho 'mpirun (Open MPI) 5.0.11'\nexit 1\n")
        self.assertEqual(self.launched("--hosts", "a", "--tag-output", "./prog")[-4:],
                         ["a:1", "--output", "tag", "./prog"])

    def test_a_machine_without_a_launcher_that_has_pmix_is_reported(self):
        self.install(MPICH)
        self.assertIn("--hosts: no launcher with PMIx is installed", self.refused("--hosts", "a", "./prog"))

    def test_root_is_told_what_open_mpi_needs(self):
        if os.geteuid() != 0:
            self.skipTest("launchers start ranks for every user but root")
        needs = ("{option}: {launcher} starts nothing as root, unless {name}=1 and {name}_CONFIRM=1 are set: set both, "
                 "or run as another user\n")
        half = {"OMPI_ALLOW_RUN_AS_ROOT": "1"}
        for launchers, launcher, name in ((OPEN_MPI_4, "mpirun (Open MPI 4.1.4)", "OMPI_ALLOW_RUN_AS_ROOT"),
                                          (OPEN_MPI_5, "mpirun (Open MPI 5.0.11)", "OMPI_ALLOW_RUN_AS_ROOT"),
                                          ({**MPICH, "prterun": ""}, "prterun", "PRTE_ALLOW_RUN_AS_ROOT")):
            self.install(launchers)
            for command, option, program in (("run", "--hosts", "./prog"), ("far", "--servers", "/bin/true")):
                with self.subTest(launcher=launcher, command=command):
                    env = self.launching_environment(**half)
                    status, output, error = self.run_job(command, option, "a,b", program, env=env)
                    self.assertEqual((status, output), (2, ""))
                    self.assertEqual(error.splitlines()[-1] + "\n",
                                     f"tonari {command}: " + needs.format(option=option, launcher=launcher, name=name))
                    self.assertLessEqual(len(error.splitlines()), 1 if command == "run" else 2, error)

    def test_root_may_consent_to_open_mpi_by_the_option_env(self):
        self.install(OPEN_MPI_4)
        consent = [word for name in ("", "_CONFIRM") for word in ("--env", f"OMPI_ALLOW_RUN_AS_ROOT{name}=1")]
        status, _, error = self.run_job("run", "--hosts", "a", *consent, "./prog", env=self.launching_environment())
        self.assertEqual((status, error), (7, ""))

    def test_wrong_hosts_and_options_for_one_host_are_refused(self):
        self.install(OPEN_MPI_4)
        for text in ("", "0", "99999", "a,,b", "a b", "a:2", "-a", ",a", "a,"):
            with self.subTest(text=text):
                words = [f"--hosts={text}"] if text else ["--hosts", ""]
                self.assertIn("--hosts: must be names of hosts separated by commas, or the number of the launcher's "
                              f"hosts to use, not '{text}'", self.refused(*words, "./prog"))
        self.assertIn("-n 1: must be at least the number of hosts, 2",
                      self.refused("--hosts", "a,b", "-n", "1", "./prog"))
        self.assertIn("use a multiple of 2", self.refused("--hosts", "2", "-n", "3", "./prog"))
        self.assertIn("--stats", self.refused("--hosts", "a", "--stats", "./prog"))
        self.assertIn("--timeout", self.refused("--hosts", "a", "--timeout", "1", "./prog"))
        self.assertIn("MISSING is not set here", self.refused("--hosts", "a", "--env", "MISSING", "./prog"))
        self.assertIn("the program is missing", self.refused("--hosts", "a"))

    def test_a_launcher_that_cannot_be_executed_gives_status_127(self):
        path = os.path.join(self.folder, "prterun")
        with open(path, "w") as file:
            file.write("#!/nowhere\n")
        os.chmod(path, 0o755)
        self.assertEqual(self.launch("--hosts", "a", "./prog")[0], 127)

    def test_ranks_of_ordinary_users_are_started_with_the_preload_library(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        if faults_told(NOBODY) != "programs":
            self.skipTest("here the kernel tells every user all faults, or none")
        self.user = NOBODY
        os.chmod(self.folder, 0o755)
        self.install({**OPEN_MPI_4, "srun": ""})
        got = self.launched("--hosts", "a", "--env", "LD_PRELOAD=libm.so.6", "./prog")
        self.assertRegex(" ".join(got),
                         r"^-n 1 --host a:1 -x LD_PRELOAD=/\S+/libtonari_share_preload\.so:libm\.so\.6 \./prog$")
        got = self.launched("--hosts", "a", "./prog", SLURM_JOB_ID="1")
        self.assertRegex(got[4], r"^--export=ALL,LD_PRELOAD=/\S+/libtonari_share_preload\.so$")
        self.assertNotIn("LD_PRELOAD", " ".join(self.launched("--hosts", "a", "./prog", TONARI_WRAP_CALLS="off")))


if __name__ == "__main__":
    unittest.main()
