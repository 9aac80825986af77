"""README.md tells people what to type: the files, folders and targets in it must exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "README.md").read_text()
COMMANDS = re.findall(r"(?m)^\$ (.*?)(?: +#.*)?$", TEXT)
TARGETS = set(re.findall(r"(?m)^([a-z0-9-]+):", (ROOT / "Makefile").read_text()))
PROGRAMS = {"export", "kubectl", "make"}
"""What is on the path of whoever reads it, once the cluster is one of theirs."""


def arguments_of(flag: str) -> list[str]:
    return sorted({path for command in COMMANDS for path in re.findall(rf"{flag} (\S+)", command)})


@pytest.mark.parametrize("path", arguments_of("-f"))
def test_a_file_that_is_read_should_exist(path: str) -> None:
    assert (ROOT / path).is_file()


@pytest.mark.parametrize("path", arguments_of("-k"))
def test_a_folder_that_is_applied_should_be_a_kustomization(path: str) -> None:
    assert (ROOT / path / "kustomization.yaml").is_file()


@pytest.mark.parametrize("target", sorted(set(re.findall(r"(?m)(?:^\$ |`)make ([a-z0-9-]+)", TEXT))))
def test_a_target_should_be_one_of_the_makefile(target: str) -> None:
    assert target in TARGETS


@pytest.mark.parametrize("program", sorted({command.split()[0] for command in COMMANDS} - PROGRAMS))
def test_a_program_should_be_here(program: str) -> None:
    # Those in .venv are there once `make venv` has made it; pyproject.toml says which.
    if program.startswith(".venv/bin/"):
        assert f'\n{Path(program).name} = "' in (ROOT / "pyproject.toml").read_text()
    else:
        assert (ROOT / program).is_file()


def test_trainjobs_should_be_created_when_admission_answers() -> None:
    starts = [command.partition(" -k ")[0].partition(" -f ")[0] for command in COMMANDS if "kubectl" in command]
    assert starts == [
        "kubectl apply --server-side",
        "kubectl apply --server-side",
        "kubectl -n kubeflow-system rollout status deployment/kubeflow-trainer-controller-manager",
        "kubectl create",
    ]
