import json

import pytest

import lock
import sbom
from sbom import Package


def test_every_licence_in_the_image_should_be_permitted() -> None:
    assert sbom.main(["--check"]) == 0


def test_the_document_should_name_every_locked_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert sbom.main([]) == 0
    components = json.loads(capsys.readouterr().out)["components"]
    locked = lock.pins_of((lock.ROOT / "requirements" / "manager.txt").read_text())
    assert {each["name"]: each["version"] for each in components} == locked
    assert {"expression": "Apache-2.0 OR BSD-3-Clause"} in next(
        each["licenses"] for each in components if each["name"] == "cryptography"
    )


@pytest.mark.parametrize(
    "expression, is_permitted",
    [
        ("MIT", True),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", True),
        ("MIT AND GPL-3.0-only", False),
        ("see the file LICENSE", False),
        ("", False),
    ],
)
def test_a_licence_should_be_permitted_only_by_its_name(expression: str, is_permitted: bool) -> None:
    assert (sbom.findings([Package("some", "1", expression)]) == []) is is_permitted
