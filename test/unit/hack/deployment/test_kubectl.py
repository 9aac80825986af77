from pathlib import Path

import pytest

from controlplane.problem import Problem
from deployment.kubectl import Kubectl


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "kubectl"
    path.write_text('#!/bin/sh\n[ "$1" = get ] && echo "$KUBECONFIG $2" && exit 0\necho "no $1" >&2\nexit 3\n')
    path.chmod(0o755)
    return path


def test_what_kubectl_prints_should_be_returned(program: Path) -> None:
    assert Kubectl(program, Path("/a/kubeconfig"))("get", "pods") == "/a/kubeconfig pods\n"


def test_a_failure_should_be_told_in_the_words_of_kubectl(program: Path) -> None:
    with pytest.raises(Problem, match="kubectl apply -k x: no apply"):
        Kubectl(program, Path("/a/kubeconfig"))("apply", "-k", "x")
