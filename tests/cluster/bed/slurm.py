"""A private Slurm on the hosts of a cluster: its controller on the first host, a daemon on every one.

It writes to /srv/slurm only, which ends with the test's world, as do its daemons. It has its own munge, with a key and
a socket of its own, to learn the user of a process.
"""

import os
import shutil
import subprocess

from bed.world import SHARED, Missing, need
from harness.jobs import eventually

CONFIGURATION = """
ClusterName=bed
SlurmctldHost={controller}({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
TmpFS=/tmp
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=pmix
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
ReturnToService=2
SlurmdTimeout=30
KillWait=2
SchedulerParameters=sched_interval=1
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Slurm:
    """Runs until it is closed, or its hosts are, or their world ends."""

    def __init__(self, hosts, slots=2):
        need("slurmctld", "slurmd", "srun", "scancel", "munged")
        self.hosts = hosts
        self.folder = os.path.join(SHARED, "slurm")
        self.environment = {**os.environ, "SLURM_CONF": os.path.join(self.folder, "slurm.conf")}
        for name in ("munge", "state"):
            os.makedirs(os.path.join(self.folder, name), mode=0o755)
        self._configure(slots)
        self._daemons = {}
        self._start_munge()
        known = self.run("srun", "--mpi=list")
        if "pmix" not in known.stdout + known.stderr:
            raise Missing("this Slurm was built without PMIx")
        self._start(0, "slurmctld", "slurmctld", "-D", "-c")
        for host in range(hosts.count):
            self._start(host, hosts.name(host), "slurmd", "-D", "-N", hosts.name(host))
        eventually(self._all_idle, "all nodes are idle")

    def close(self):
        for daemon in self._daemons.values():
            daemon.kill()
            daemon.wait()
        shutil.rmtree(self.folder)

    def start(self, *words, **options):
        """Starts srun or another command of Slurm's on the first host."""
        return self.hosts.start(0, *words, **{"env": self.environment, **options})

    def run(self, *words, **options):
        return self.hosts.run(0, *words, **{"env": self.environment, **options})

    def jobs(self):
        """The numbers of the jobs that are queued or run."""
        return self.run("squeue", "-h", "-o", "%A").stdout.split()

    def _start_munge(self):
        path = os.path.join(self.folder, "munge")
        with open(os.path.join(path, "key"), "wb", opener=lambda name, flags: os.open(name, flags, 0o400)) as file:
            file.write(os.urandom(1024))
        files = [f"--{name}-file={path}/{name}" for name in ("key", "pid", "log", "seed")]
        self._start(0, "munge", "munged", "--foreground", "--force", f"--socket={path}/socket", *files)
        eventually(lambda: os.path.exists(f"{path}/socket"), "munge listens")

    def _configure(self, slots):
        places = [(self.hosts.name(host), self.hosts.address(host)) for host in range(self.hosts.count)]
        nodes = "\n".join(f"NodeName={name} NodeAddr={address} CPUs={slots}" for name, address in places)
        with open(self.environment["SLURM_CONF"], "w") as file:
            file.write(CONFIGURATION.format(controller=self.hosts.name(0), address=self.hosts.address(0),
                                            folder=self.folder, nodes=nodes))

    def _start(self, host, name, *words):
        with open(self._log(name), "w") as log:
            self._daemons[name] = self.hosts.start(host, *words, env=self.environment, stdout=log, stderr=log)

    def _log(self, name):
        return os.path.join(self.folder, f"{name}.log")

    def _all_idle(self):
        for name, daemon in self._daemons.items():
            if daemon.poll() is not None:
                with open(self._log(name)) as log:
                    raise RuntimeError(f"{name} has ended:\n{log.read()}")
        return self.run("sinfo", "-h", "-t", "idle", "-o", "%D").stdout.split() == [str(self.hosts.count)]
