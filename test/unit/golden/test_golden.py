"""What we build is what the original builds, for inputs that it handles sensibly.

A case has `input` (documents), `expect` (`objects` or `errors`), and `departs` where the expectation is ours, and why.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ktrainer.app.documents import Document, DocumentReader, run_now
from ktrainer.app.keys import show_curve_keys, show_ssh_keys
from ktrainer.app.render import Rendering, render
from ktrainer.app.training import build_training
from ktrainer.framework.dependencies import Dependencies
from support.golden import normal

CASES = sorted(Path(__file__).parent.glob("*.json"))


def rendering_of(values: list[dict[str, Any]]) -> Rendering:
    documents = [Document("case", number, value) for number, value in enumerate(values, 1)]
    reader = DocumentReader(documents)
    dependencies = Dependencies(reader=reader, make_ssh_keys=show_ssh_keys, make_curve_keys=show_curve_keys)
    return run_now(render(documents, build_training(dependencies), "default"))


def test_there_should_be_cases() -> None:
    assert len(CASES) >= 120


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_render_should_build_what_the_original_builds(path: Path) -> None:
    case = json.loads(path.read_text())
    rendering = rendering_of(case["input"])
    errors = [error for report in rendering.reports for error in report.errors]
    if "errors" in case["expect"]:
        for wanted in case["expect"]["errors"]:
            stem = re.sub(r"\[.*", "", wanted["path"])
            assert any(error.startswith(stem) and wanted["type"] in error for error in errors), errors
        assert rendering.objects == []
    else:
        assert errors == []
        assert normal(rendering.objects) == normal(case["expect"]["objects"])
