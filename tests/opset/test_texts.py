"""Strings whose bytes are read: compiled code gives what Python's strings give."""

from __future__ import annotations

import numpy as np
import pytest

from aot.frontends.conversion.automata import match_table
from aot.ir.interpret import interpret
from aot.opset.control.texts import CODE_POINTS, StringEqual, StringLetters, StringMatch, StringWords
from aot.runtime.arrays.strings import encode
from aot.runtime.errors import UnsupportedError
from tests.opset.test_strings import WORDS, check, graph_of

LINES = np.array(["a,b,,c", "", ",", "ab", "  x  y ", "🙂,世界", "a,,b"], object)


def test_equal() -> None:
    others = np.array(["Intel", "x", "Grüße, 世", "a\0b\0", "🙃", ""], object)
    check(StringEqual(), [*encode(WORDS), *encode(others)])


@pytest.mark.parametrize("most", [-1, 0, 1, 2])
@pytest.mark.parametrize("separator", ["", ",", ",,", "世"])
@pytest.mark.parametrize("room", [1, 2, 4])
def test_words(separator: str, most: int, room: int) -> None:
    inputs, between = [*encode(LINES), np.arange(room)], [np.frombuffer(separator.encode(), np.uint8)]
    first, last, counts = interpret(graph_of(StringWords(most), inputs, between, outputs=3), inputs)
    rows = [text.split(separator or None, most) for text in LINES]
    assert counts.tolist() == list(map(len, rows))
    words = [
        [inputs[2][a:b].tobytes().decode() for a, b in zip(*ends, strict=True)]
        for ends in zip(first, last, strict=True)
    ]
    assert words == [[*row, *[""] * room][:room] for row in rows]
    check(StringWords(most), inputs, between, outputs=3) if most in (-1, 1) and room == 2 else None


def test_texts_that_an_automaton_accepts() -> None:
    table, accepts = match_table(r"a(b|,)*|\b(x|ü)\b|")
    check(StringMatch(), encode(LINES), [table, accepts])
    inputs = encode(np.array(["a", "ab,b", "", "x", "ü", "abx", "b"], object))
    (found,) = interpret(graph_of(StringMatch(), inputs, [table, accepts]), inputs)
    assert found.tolist() == [True, True, True, True, False, False, False]  # ü is no letter of a word, as in RE2


HUGE = ["a{99999999999}", "((a{99}){99}){9}", "(a?){4000}", "(" * 3000 + ")" * 3000]
OTHER_IN_RE2 = ["(?i)a", "(?i:a)", "(?s).", "[[:alpha:]]", "a{,3}"]


@pytest.mark.parametrize("pattern", [r"(a)\1", "(?=a)", "[^ü]", "[a-ü]", "(", *HUGE, *OTHER_IN_RE2])
def test_patterns_that_are_no_automaton_are_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedError, match="pattern"):
        match_table(pattern)


@pytest.mark.filterwarnings("error")
def test_patterns_mean_what_re2_says() -> None:
    """An empty part may repeat as often as it likes; \\v is no space; a set may hold a bracket."""
    table, accepts = match_table(r"((){1000000000}){1000000000}\s+(a?){300}(){0,1000000000}|[[x]b")
    inputs = encode(np.array([" a", "[b", "\v", "", " b"], object))
    (found,) = interpret(graph_of(StringMatch(), inputs, [table, accepts]), inputs)
    assert found.tolist() == [True, True, False, False, False]


def test_letters_that_take_as_many_bytes() -> None:
    table = np.arange(CODE_POINTS, dtype=np.int32)
    for old, new in zip("aäж世ẞ", "Aßж界x", strict=True):
        table[ord(old)] = ord(new)
    text = np.frombuffer("aäж世ẞb🙂".encode() + b"\xff\xe4\xb8", np.uint8)
    found = StringLetters().evaluate(text, table)[0]
    assert found.tobytes() == "Aßж界ẞb🙂".encode() + b"\xff\xe4\xb8"
    check(StringLetters(), [text, table])
