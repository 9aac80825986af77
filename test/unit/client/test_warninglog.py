from multidict import CIMultiDict
from structlog.testing import capture_logs

from ktrainer.client.warninglog import MAX_TEXTS, WarningLog


def warnings_of(log: WarningLog, *values: str) -> list[str]:
    headers = CIMultiDict([("Warning", value) for value in values] + [("Date", "x")])
    with capture_logs() as logs:
        log.note(headers, "/api/v1/pods?limit=1")
    assert all(each["path"] == "/api/v1/pods" and each["log_level"] == "warning" for each in logs)
    return [each["warning"] for each in logs]


def test_every_warning_should_be_logged_once() -> None:
    log = WarningLog()
    assert warnings_of(log, '299 - "a"', '299 - "b", 299 - "c"') == ["a", "b", "c"]
    assert warnings_of(log, '299 - "b"', '299 - "d"') == ["d"]
    assert warnings_of(log) == []


def test_quotes_should_be_understood_and_control_characters_removed() -> None:
    assert warnings_of(WarningLog(), r'299 - "say \"no\" to \\ "') == ['say "no" to \\ ']
    assert warnings_of(WarningLog(), '299 - "a\tb\x1b[31m"') == ["a b [31m"]
    assert warnings_of(WarningLog(), f'299 - "{"x" * 5000}"') == ["x" * 2048]


def test_what_is_no_warning_should_be_ignored() -> None:
    assert warnings_of(WarningLog(), '199 - "a"', "299 - a", "", '299 - "a') == []


def test_few_warnings_should_be_remembered() -> None:
    log = WarningLog()
    for number in range(MAX_TEXTS + 1):
        assert warnings_of(log, f'299 - "{number}"') == [str(number)]
    assert warnings_of(log, '299 - "1"') == []
    assert warnings_of(log, '299 - "0"') == ["0"]
