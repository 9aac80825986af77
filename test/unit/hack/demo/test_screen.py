import io

from demo.jobs import Row
from demo.screen import Lines, Table, build_table, screen_for


def row(state: str, *, name: str = "a", note: str = "", seconds: float = 1.0) -> Row:
    return Row(name, "torch-distributed", state, 2, "active: node", note, seconds)


def test_lines_should_tell_changes_only() -> None:
    stream = io.StringIO()
    lines = Lines(stream)
    for state, seconds in (("", 0), ("Pending", 1), ("Pending", 2), ("Running", 3), ("Complete", 9)):
        lines.show([row(state, seconds=seconds)])
    assert [line.split() for line in stream.getvalue().splitlines()] == [
        ["1", "s", "a", "Pending"],
        ["3", "s", "a", "Running"],
        ["9", "s", "a", "Complete"],
    ]


def test_lines_should_tell_what_is_wrong() -> None:
    stream = io.StringIO()
    Lines(stream).show([row("Failed", note="OOMKilled in p")])
    assert stream.getvalue().split("Failed")[1].strip() == "OOMKilled in p"


def test_a_table_should_be_drawn_over_the_last_one() -> None:
    stream = io.StringIO()
    table = Table(stream)
    table.show([row("Pending"), row("Pending", name="b")])
    assert "\x1b[3A" not in stream.getvalue()
    table.show([row("Running"), row("Pending", name="b")])
    assert stream.getvalue().count("\x1b[3A") == 1
    assert stream.getvalue().endswith("\x1b[J")


def test_a_table_should_fit_the_terminal_and_colour_the_state() -> None:
    lines = build_table([row("Failed", note="x" * 300), row("", name="longer")], 80)
    assert lines[0].split() == ["TRAINJOB", "RUNTIME", "STATE", "NODES", "TIME", "JOBS"]
    assert "\x1b[31mFailed\x1b[0m" in lines[1]
    assert len(lines[1].replace("\x1b[31m", "").replace("\x1b[0m", "")) < 80
    assert lines[2].split()[2] == "-"


def test_a_pipe_should_get_lines() -> None:
    assert isinstance(screen_for(io.StringIO()), Lines)
