import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ktrainer.cli.main import main
from support.training import job, runtime, trainjob_json

TORCH = runtime(mlPolicy={"torch": {}})
MPI = runtime(job("launcher"), job("node", None), name="mpi", mlPolicy={"mpi": {}})


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def written(*values: dict[str, Any], name: str = "in.yaml") -> str:
        file = tmp_path / name
        file.write_text("\n---\n".join(map(json.dumps, values)))
        return str(file)

    return written


def test_render_should_print_yaml_that_reads_well(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "--offline", "-f", write(TORCH, trainjob_json())]) == 0
    out, err = capsys.readouterr()
    snapshot, jobset = yaml.safe_load_all(out)
    assert out.startswith(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: demo-runtime-snapshot\n  namespace: team-a\n"
    )
    assert "immutable: true\ndata:\n  runtime: |\n    apiVersion: trainer.kubeflow.org/v1alpha1\n" in out
    assert (snapshot["kind"], jobset["kind"], err) == ("ConfigMap", "JobSet", "")
    assert yaml.safe_load(snapshot["data"]["runtime"])["spec"] == TORCH["spec"]


def test_render_should_print_one_list_of_json(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "--offline", "-o", "json", "-f", write(TORCH), write(trainjob_json(), name="b.yaml")]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["apiVersion"], made["kind"]) == ("v1", "List")
    assert [each["kind"] for each in made["items"]] == ["ConfigMap", "JobSet"]


def test_files_should_be_given_one_by_one_or_together(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = write(TORCH), write(trainjob_json(), name="b.yaml")
    assert main(["render", "--offline", "-f", first, "-f", second]) == 0
    together = capsys.readouterr().out
    assert main(["render", "--offline", "-f", first, second]) == 0
    assert capsys.readouterr().out == together


def test_secrets_should_be_shown_as_placeholders(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "--offline", "-f", write(MPI, trainjob_json(runtime="mpi"))]) == 0
    (secret,) = (each for each in yaml.safe_load_all(capsys.readouterr().out) if each["kind"] == "Secret")
    assert secret["stringData"] == {"ssh-privatekey": "<generated>", "ssh-publickey": "<generated>"}


def test_the_namespace_should_be_that_of_what_names_none(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    value = trainjob_json(kind="TrainingRuntime")
    value["metadata"] = {"name": "demo"}
    local = runtime(kind="TrainingRuntime")
    del local["metadata"]["namespace"]
    assert main(["render", "--offline", "-n", "mine", "-f", write(local, value)]) == 0
    assert {each["metadata"]["namespace"] for each in yaml.safe_load_all(capsys.readouterr().out)} == {"mine"}
    assert main(["render", "--offline", "-f", write(local, value)]) == 0
    assert {each["metadata"]["namespace"] for each in yaml.safe_load_all(capsys.readouterr().out)} == {"default"}


@pytest.mark.parametrize("name", ["", "..", "Mine", "a b", "a" * 64])
def test_a_namespace_that_cannot_be_should_be_a_usage_error(
    name: str, write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["validate", "--offline", "-n", name, "-f", write(TORCH)])
    assert stopped.value.code == 2
    assert f"-n/--namespace: not the name of a namespace: {name!r}" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["render", "validate"])
def test_findings_should_be_told_with_file_document_kind_and_name(
    command: str, write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = trainjob_json(trainer={"env": [{"name": "PET_NNODES", "value": "1"}]})
    file = write(TORCH, bad)
    assert main([command, "--offline", "-f", file]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        f'{file}#2: TrainJob/demo: spec.trainer.env: Invalid value: ["PET_NNODES"]: '
        "these variables are set by the runtime\n"
    )


def test_a_finding_should_be_one_line_whatever_it_is_about(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    value = trainjob_json("de\nmo")
    value["spec"]["\x1b[2J\u20ac"] = 1
    file = write(TORCH, value)
    assert main(["render", "--offline", "-f", file]) == 1
    warning, error = capsys.readouterr().err.splitlines()
    assert warning == f"{file}#2: TrainJob/de\\nmo: warning: spec.\\x1b[2J\u20ac: unknown field"
    assert error.startswith(f"{file}#2: TrainJob/de\\nmo: Invalid value")


def test_warnings_should_not_be_findings(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    old = json.loads(json.dumps(TORCH))
    old["metadata"]["labels"] = {"trainer.kubeflow.org/support": "deprecated"}
    file = write(old, trainjob_json())
    assert main(["validate", "--offline", "-f", file]) == 0
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"{file}#2: TrainJob/demo: warning: the ClusterTrainingRuntime rt is deprecated, and will be removed"
    )


def test_validate_should_print_nothing_where_all_is_well(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--offline", "-f", write(TORCH, trainjob_json())]) == 0
    assert main(["validate", "--offline", "-f", write(TORCH)]) == 0
    assert capsys.readouterr() == ("", "")


def test_files_without_anything_to_do_should_be_told(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(TORCH)
    assert main(["render", "--offline", "-f", file]) == 2
    assert capsys.readouterr().err == f"ktrainer: there is no TrainJob in {file}\n"
    other = write({"kind": "Pod"})
    assert main(["validate", "--offline", "-f", other]) == 2
    assert "no TrainJob or runtime" in capsys.readouterr().err


def test_json_should_be_a_list_even_where_nothing_is_built(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = write(TORCH, trainjob_json(managedBy="kueue.x-k8s.io/multikueue"))
    assert main(["render", "--offline", "-o", "json", "-f", elsewhere]) == 0
    assert json.loads(capsys.readouterr().out) == {"apiVersion": "v1", "kind": "List", "items": []}
    assert main(["render", "--offline", "-f", elsewhere]) == 0
    assert capsys.readouterr().out == ""


def test_a_number_that_nobody_could_write_should_be_unreadable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "huge.yaml"
    for text in (f"a: {10**30}\n", f'{{"a": {10**30}}}'):
        file.write_text(text)
        assert main(["render", "--offline", "-o", "json", "-f", str(file)]) == 2
        assert capsys.readouterr().err.startswith(f"ktrainer: {file}#1: ")


@pytest.mark.parametrize("kind", ["full", "closed", "pipe"])
def test_an_output_that_takes_nothing_should_be_told(kind: str, write: Any) -> None:
    command = [sys.executable, "-m", "ktrainer", "render", "--offline", "-f", write(TORCH, trainjob_json())]
    match kind:
        case "full":
            shell = '"$@" > /dev/full'
        case "closed":
            shell = '"$@" >&-'
        case _:
            shell = 'exec 3> >(exec <&-; sleep 0); wait $!; "$@" >&3'
    run = subprocess.run(["bash", "-c", shell, "bash", *command], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stderr.startswith("ktrainer: the output cannot be written: ")
    assert run.stderr.count("\n") == 1


def test_what_is_said_to_nobody_should_not_be_among_the_output(write: Any) -> None:
    file = write(TORCH, {**trainjob_json(), "unknown": 1})
    command = [sys.executable, "-m", "ktrainer", "render", "--offline", "-o", "json", "-f", file]
    run = subprocess.run(["bash", "-c", '"$@" 2>&-', "bash", *command], capture_output=True, text=True, check=False)
    assert run.returncode == 0
    assert json.loads(run.stdout)["kind"] == "List"


def test_the_output_should_be_utf8_whatever_the_locale_says(write: Any) -> None:
    command = [sys.executable, "-m", "ktrainer", "render", "--offline", "-f"]
    file = write(TORCH, trainjob_json(annotations={"a": "\u20ac"}))
    env = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    run = subprocess.run([*command, file], env=env, capture_output=True, check=True)
    assert yaml.safe_load(run.stdout.decode().split("---\n")[1])["metadata"]["annotations"] == {"a": "\u20ac"}


def test_unreadable_input_should_be_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "--offline", "-f", str(tmp_path / "nope.yaml")]) == 2
    assert "nope.yaml" in capsys.readouterr().err


def test_wrong_usage_should_exit_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["render"], ["render", "-f", "x", "-o", "xml"]):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 2
    capsys.readouterr()


def test_a_command_over_files_should_import_little(write: Any) -> None:
    script = (
        "import sys\nfrom ktrainer.cli.main import main\ncode = main(sys.argv[1:])\n"
        "heavy = {'asyncio', 'aiohttp', 'cryptography', 'kubernetes_asyncio', 'prometheus_client', 'ssl', 'structlog'}"
        "\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\nsys.exit(code)\n"
    )
    arguments = ["render", "--offline", "-f", write(MPI, trainjob_json(runtime="mpi"))]
    run = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
    assert run.stderr == "[]\n"
