"""Progress of a compilation: a line for each stage, and on a terminal a bar."""

import io

import pytest

from aot.commands.line.progress import Watch


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def show(stream: io.StringIO) -> Watch:
    with Watch(stream) as watch:
        for stage, done, total in (("read", 0, 1), ("read", 1, 1), ("link", 1, 1)):
            watch(stage, done, total)
    return watch


def test_stages_have_lines() -> None:
    stream = io.StringIO()
    watch = show(stream)
    assert [line.split()[:2] for line in stream.getvalue().splitlines()] == [["read", "1/1"], ["link", "1/1"]]
    assert list(watch.seconds) == ["read", "link"] and watch.total >= sum(watch.seconds.values())


def test_a_terminal_has_bars() -> None:
    stream = Terminal()
    show(stream)
    assert "read" in stream.getvalue() and "link" in stream.getvalue() and "s in all" not in stream.getvalue()


def test_the_last_line_stays_after_an_error() -> None:
    stream = io.StringIO()

    def fail() -> None:
        with Watch(stream) as watch:
            watch("read", 0, 1)
            raise ValueError("damaged")

    with pytest.raises(ValueError, match="damaged"):
        fail()
    assert stream.getvalue().startswith("read         0/1")
