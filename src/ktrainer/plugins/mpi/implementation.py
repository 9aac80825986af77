"""What the MPI implementations want to be told, and how.

OpenMPI is exactly what the original sets. From its version 5 on, Open MPI is started by PRRTE, which no longer reads
the variables of ORTE. PRRTE must not keep domains in host names: the hostfile has the short form of a pod's name, so
that a launcher which is a node itself would not know its own entry again, and connect to itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ktrainer.api.trainingruntime import MpiImplementation
from ktrainer.framework.container import env_var

if TYPE_CHECKING:
    from ktrainer.kube.jsonvalue import JsonObject

HOSTFILE_DIR: Final = "/etc/mpi"
HOSTFILE: Final = "hostfile"

_PATH: Final = f"{HOSTFILE_DIR}/{HOSTFILE}"
_SSH_ARGS: Final = "-o ConnectionAttempts=10"


@dataclass(frozen=True, slots=True)
class Implementation:
    """One MPI implementation."""

    env: tuple[tuple[str, str], ...]
    """Names and values of the launcher's variables; `{slots}` stands for the number of processes on a node."""
    host: str
    """A line of the hostfile; `{host}` and `{slots}` as above."""

    @property
    def names(self) -> frozenset[str]:
        """The names of the variables, which a TrainJob may not set."""
        return frozenset(name for name, _ in self.env)

    def variables(self, slots: int) -> list[JsonObject]:
        """The launcher's variables."""
        return [env_var(name, value.format(slots=slots)) for name, value in self.env]


_OPEN_MPI: Final = Implementation(
    env=(
        ("OMPI_MCA_orte_default_hostfile", _PATH),
        ("OMPI_MCA_orte_keep_fqdn_hostnames", "true"),
        ("OMPI_MCA_orte_set_default_slots", "{slots}"),
        ("OMPI_MCA_plm_rsh_args", _SSH_ARGS),
    ),
    host="{host} slots={slots}\n",
)
_OPEN_MPI_5: Final = Implementation(
    env=(
        ("PRTE_MCA_prte_default_hostfile", _PATH),
        ("PRTE_MCA_prte_keep_fqdn_hostnames", "false"),
        ("PRTE_MCA_prte_set_default_slots", "{slots}"),
        ("PRTE_MCA_plm_ssh_args", _SSH_ARGS),
    ),
    host="{host} slots={slots}\n",
)
_INTEL: Final = Implementation(
    env=(
        ("I_MPI_HYDRA_HOST_FILE", _PATH),
        ("I_MPI_PERHOST", "{slots}"),
        ("I_MPI_HYDRA_BOOTSTRAP", "ssh"),
    ),
    host="{host}:{slots}\n",
)
_MPICH: Final = Implementation(
    env=(("HYDRA_HOST_FILE", _PATH), ("HYDRA_LAUNCHER", "ssh")),
    host="{host}:{slots}\n",
)

IMPLEMENTATIONS: Final = {
    MpiImplementation.OPEN_MPI: _OPEN_MPI,
    MpiImplementation.DEFAULT: _OPEN_MPI,
    MpiImplementation.OPEN_MPI_5: _OPEN_MPI_5,
    MpiImplementation.INTEL: _INTEL,
    MpiImplementation.MPICH: _MPICH,
}
