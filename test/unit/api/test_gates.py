import pytest

from ktrainer.api.gates import FEATURES, Gate, open_gates, parse_gates, validate_gates
from ktrainer.kube.fields import Path

PATH = Path("--feature-gates")


def test_every_gate_should_stand_somewhere_by_default() -> None:
    assert set(FEATURES) == set(Gate)
    assert open_gates() == {Gate.RUNTIME_IN_USE_PROTECTION}


def test_the_last_setting_should_win() -> None:
    assert open_gates({"TrainJobStatus": False}, {"TrainJobStatus": True, "RuntimeInUseProtection": False}) == {
        Gate.TRAINJOB_STATUS
    }


def test_a_group_should_move_the_gates_that_nobody_names() -> None:
    assert open_gates({"AllAlpha": True}) == {Gate.TRAINJOB_STATUS, Gate.RUNTIME_IN_USE_PROTECTION}
    assert open_gates({"AllBeta": False}) == set()
    assert open_gates({"AllAlpha": True, "TrainJobStatus": False}) == {Gate.RUNTIME_IN_USE_PROTECTION}


def test_a_matter_of_choice_should_be_chosen_by_its_own_name() -> None:
    gate = Gate.CONDITIONS_WHILE_RUNNING
    assert gate not in open_gates({"AllAlpha": True, "AllBeta": True})
    assert gate in open_gates({gate: True, "AllAlpha": False, "AllBeta": False})


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("", {}),
        ("TrainJobStatus=true", {"TrainJobStatus": True}),
        (" TrainJobStatus = 1 ,AllBeta=F,", {"TrainJobStatus": True, "AllBeta": False}),
    ],
)
def test_the_command_line_should_be_read(text: str, settings: dict[str, bool]) -> None:
    assert parse_gates(PATH, text) == settings


@pytest.mark.parametrize(
    "text", ["TrainJobStatus", "TrainJobStatus=", "TrainJobStatus=yes", "TrainJobStatus=TrUe", "=true"]
)
def test_a_bad_command_line_should_be_refused(text: str) -> None:
    result = parse_gates(PATH, text)
    assert isinstance(result, list)
    assert len(result) == 1


def test_an_unknown_gate_should_be_refused_by_name() -> None:
    (error,) = validate_gates(Path("featureGates"), {"AllAlpha": True, "Warp": True})
    assert str(error) == (
        'featureGates: Unsupported value: "Warp": supported values: '
        '"TrainJobStatus", "RuntimeInUseProtection", "ConditionsWhileRunning", "AllAlpha", "AllBeta"'
    )
