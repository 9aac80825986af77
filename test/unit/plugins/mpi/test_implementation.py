import pytest

from ktrainer.api.trainingruntime import MpiImplementation
from ktrainer.plugins.mpi.implementation import IMPLEMENTATIONS


@pytest.mark.parametrize(
    ("implementation", "env"),
    [
        pytest.param(
            MpiImplementation.OPEN_MPI,
            {
                "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
                "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
                "OMPI_MCA_orte_set_default_slots": "4",
                "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
            },
            id="OpenMPI",
        ),
        pytest.param(
            MpiImplementation.OPEN_MPI_5,
            {
                "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
                "PRTE_MCA_prte_keep_fqdn_hostnames": "false",
                "PRTE_MCA_prte_set_default_slots": "4",
                "PRTE_MCA_plm_ssh_args": "-o ConnectionAttempts=10",
            },
            id="OpenMPI5",
        ),
        pytest.param(
            MpiImplementation.INTEL,
            {
                "I_MPI_HYDRA_HOST_FILE": "/etc/mpi/hostfile",
                "I_MPI_PERHOST": "4",
                "I_MPI_HYDRA_BOOTSTRAP": "ssh",
            },
            id="Intel",
        ),
        pytest.param(
            MpiImplementation.MPICH,
            {"HYDRA_HOST_FILE": "/etc/mpi/hostfile", "HYDRA_LAUNCHER": "ssh"},
            id="MPICH",
        ),
    ],
)
def test_a_launcher_should_be_told_in_its_own_words(implementation: MpiImplementation, env: dict[str, str]) -> None:
    made = IMPLEMENTATIONS[implementation]
    assert {entry["name"]: entry["value"] for entry in made.variables(4)} == env
    assert made.names == set(env)


def test_every_implementation_should_be_known_and_none_mean_open_mpi() -> None:
    assert set(IMPLEMENTATIONS) == set(MpiImplementation)
    assert IMPLEMENTATIONS[MpiImplementation.DEFAULT] is IMPLEMENTATIONS[MpiImplementation.OPEN_MPI]
