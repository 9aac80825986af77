"""What we build is what the original builds, for inputs that it handles sensibly.

A case has `input` (documents), `expect` (`objects` or `errors`), and `departs` where the expectation is ours, and why.
"""

import json
import re
from pathlib import Path

import pytest

from support.golden import normal
from support.rendering import rendered

CASES = sorted(Path(__file__).parent.glob("*.json"))


def test_there_should_be_cases() -> None:
    assert len(CASES) >= 190


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_render_should_build_what_the_original_builds(path: Path) -> None:
    case = json.loads(path.read_text())
    rendering = rendered(*case["input"])
    errors = [error for report in rendering.reports for error in report.errors]
    if "errors" in case["expect"]:
        for wanted in case["expect"]["errors"]:
            stem = re.sub(r"\[.*", "", wanted["path"])
            assert any(error.startswith(stem) and wanted["type"] in error for error in errors), errors
        assert rendering.objects == []
    else:
        assert errors == []
        assert normal(rendering.objects) == normal(case["expect"]["objects"])
