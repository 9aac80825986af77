import pytest

from ktrainer.framework.container import EnvLog
from ktrainer.framework.podset import PodSet
from ktrainer.plugins.mpi.hostfile import MAX_BYTES, problem_with, size_of
from support.training import job

LINE = "{host} slots=8\n"


@pytest.mark.parametrize("count", [1, 2, 9, 10, 11, 99, 100, 101, 1234])
@pytest.mark.parametrize("replicas", [1, 10, 11])
def test_the_size_should_be_that_of_the_lines(count: int, replicas: int) -> None:
    pods = PodSet(job("n\u00f6de", None, replicas=replicas), "demo", "sub", EnvLog())
    pods.count = count
    lines = "".join(LINE.replace("{host}", host) for host in pods.endpoints)
    assert size_of(LINE, pods, count) == len(lines.encode())


def test_the_size_should_be_known_of_what_nobody_could_write() -> None:
    pods = PodSet(job("node", None, replicas=2**31 - 1), "demo", "sub", EnvLog())
    assert size_of(LINE, pods, 2**31 - 1) > 10**20


def test_a_config_map_should_be_as_full_as_it_may_be() -> None:
    assert problem_with(MAX_BYTES) == ""
    assert problem_with(MAX_BYTES + 1) == (
        "the hostfile would have 1048577 bytes, and 1048576 are all that a ConfigMap holds"
    )
