import io
import json
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from ktrainer.app.logging import MAX_CHARS, REDACTED, Format, Level, configure_logging
from ktrainer.client import warninglog
from ktrainer.client.warninglog import WarningLog


@pytest.fixture
def output() -> Iterator[io.StringIO]:
    # A copy: configuring empties the very list.
    handlers, level = list(logging.root.handlers), logging.root.level
    yield io.StringIO()
    structlog.reset_defaults()
    logging.captureWarnings(capture=False)
    logging.root.handlers[:], logging.root.level = handlers, level


def entries(output: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.getvalue().splitlines()]


def configured(output: io.StringIO, level: Level = Level.INFO, form: Format = Format.JSON) -> Any:
    configure_logging(level, form, output)
    return structlog.get_logger("test")


def test_an_entry_should_be_a_line_of_json_with_time_and_level(output: io.StringIO) -> None:
    configured(output).info("reconciled", name="one", seconds=0.5, keys=("a", 1), missing=None)
    (entry,) = entries(output)
    assert entry.pop("timestamp").endswith("Z")
    expected = {"event": "reconciled", "level": "info", "name": "one", "seconds": 0.5, "keys": ["a", 1]}
    assert entry == expected | {"missing": None}


def test_a_console_should_get_a_line_for_people(output: io.StringIO) -> None:
    configured(output, form=Format.CONSOLE).warning("not so", name="one", reason="a b", parts={"x": 1}, empty="")
    time, _, rest = output.getvalue().partition(" ")
    assert time.endswith("Z")
    assert rest == 'WARNING not so name=one reason="a b" parts={"x":1} empty=""\n'


def test_less_important_entries_should_be_left_out(output: io.StringIO) -> None:
    log = configured(output, Level.WARNING)
    log.info("one")
    log.warning("two")
    assert [entry["event"] for entry in entries(output)] == ["two"]


@pytest.mark.parametrize("form", list(Format))
def test_nobody_should_add_lines_of_their_own(output: io.StringIO, form: Format) -> None:
    log = configured(output, form=form)
    log.info("a\nb\r\x1b[2J", name="c\nd\u2028e")
    (line,) = output.getvalue().splitlines()
    assert "\x1b" not in line


def test_a_traceback_should_be_indented_on_a_console(output: io.StringIO) -> None:
    log = configured(output, form=Format.CONSOLE)
    try:
        raise ValueError("x\n2026-01-01T00:00:00Z INFO forged")
    except ValueError:
        log.exception("failed")
    first, *rest = output.getvalue().splitlines()
    assert "failed" in first
    assert any("ValueError: x" in line for line in rest)
    assert all(line.startswith("    ") for line in rest)


@pytest.mark.parametrize("form", list(Format))
@pytest.mark.parametrize(
    "facts",
    [
        {"Authorization": "hunter2"},
        {"token": "hunter2"},
        {"object": {"stringData": {"password": "hunter2"}}},
        {"object": {"containers": [{"env": [{"name": "KEY", "value": "hunter2"}]}]}},
        {"webhook": {"clientConfig": {"caBundle": "hunter2"}}},
        {"error": "401 for Authorization: Bearer hunter2"},
        {"error": "-----BEGIN EC PRIVATE KEY-----\nhunter2\n-----END EC PRIVATE KEY-----"},
        {"error": "token eyJhbGciOiJSUzI1.eyJhdWQiOiJodW50ZXIyIg.hunter2"},
        {"error": ValueError("Bearer hunter2")},
    ],
)
def test_secrets_should_stay_out(output: io.StringIO, form: Format, facts: dict[str, Any]) -> None:
    configured(output, form=form).info("x", **facts)
    assert "hunter2" not in output.getvalue()
    assert REDACTED in output.getvalue()


class Mute:
    """Cannot even be printed."""

    def __repr__(self) -> str:
        raise RuntimeError("mute")


def itself() -> list[Any]:
    """A list that contains itself."""
    made: list[Any] = []
    made.append(made)
    return made


@pytest.mark.parametrize("form", list(Format))
@pytest.mark.parametrize(
    "fact, shown",
    [
        pytest.param("d\udce9pr", "d?pr", id="a lone surrogate"),
        pytest.param({"d\udce9pr": ["\udce9"]}, "d?pr", id="a lone surrogate in a key"),
        pytest.param({("a", 1): b"b", None: 2}, "('a', 1)", id="keys that are no text"),
        pytest.param(2**200, hex(2**200), id="a large number"),
        pytest.param(-(10**5000), "-0x", id="a number of more digits than Python prints"),
        pytest.param(Mute(), "<Mute>", id="an object that cannot be printed"),
        pytest.param({Mute(): 1}, "<Mute>", id="a key that cannot be printed"),
        pytest.param(itself(), "…", id="a list that contains itself"),
        pytest.param(object(), "<object object", id="any object"),
    ],
)
def test_nothing_should_make_a_call_fail(output: io.StringIO, form: Format, fact: Any, shown: str) -> None:
    configured(output, form=form).info("x", fact=fact, **{"k\udce9y": 1})
    (line,) = output.getvalue().encode().decode().splitlines()
    assert shown in line
    assert "k?y" in line


def test_what_others_log_should_not_fail_either(output: io.StringIO) -> None:
    configured(output)
    logging.getLogger("other").warning("%s", Mute())
    logging.getLogger("other").warning("%(missing)s", {"other": 1})
    logging.getLogger("other").warning(Mute())
    assert [entry["event"] for entry in entries(output)] == ["%s", "%(missing)s", "<Mute>"]


def test_a_warning_header_that_is_no_utf_8_should_be_logged(
    output: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warninglog, "_log", configured(output))
    WarningLog().note({"Warning": b'299 - "d\xe9pr"'.decode("utf-8", "surrogateescape")}, "/api/v1/pods")
    (entry,) = entries(output)
    assert entry["warning"] == "d?pr"


def test_a_long_text_should_be_cut(output: io.StringIO) -> None:
    configured(output).info("x" * 5000, nested={"y": ["z" * 5000]})
    (entry,) = entries(output)
    assert entry["event"] == "x" * MAX_CHARS + f"… ({5000 - MAX_CHARS} more)"
    assert len(entry["nested"]["y"][0]) < MAX_CHARS + 20


def test_what_python_itself_has_to_say_should_come_too(output: io.StringIO) -> None:
    configured(output)
    logging.getLogger("asyncio").error("Task exception was never retrieved", exc_info=ValueError("lost"))
    logging.getLogger("other").warning("%d", "no number")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    first, second, third = entries(output)
    assert (first["level"], first["logger"]) == ("error", "asyncio")
    assert "ValueError: lost" in first["exception"]
    assert second["event"] == "%d"
    assert "DeprecationWarning: old" in third["event"]
