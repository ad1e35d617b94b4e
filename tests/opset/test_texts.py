"""Strings whose bytes are read: compiled code gives what Python's strings give."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from aot.frontends.conversion import automata
from aot.frontends.conversion.automata import match_table
from aot.ir.interpret import interpret
from aot.opset.control.texts import CODE_POINTS, StringEqual, StringLetters, StringMatch, StringWords
from aot.runtime.arrays.strings import encode
from aot.runtime.errors import UnsupportedError
from tests.opset.test_strings import WORDS, Use, check, graph_of

LINES = np.array(["a,b,,c", "", ",", "ab", "  x  y ", "🙂,世界", "a,,b"], object)
OTHERS = np.array(["Intel", "x", "Grüße, 世", "a\0b\0", "🙃", ""], object)
TABLE, ACCEPTS = match_table(r"a(b|,)*|\b(x|ü)\b|")
SEPARATORS = ("", ",", ",,", "世")


def split(separator: str, most: int, room: int) -> Use:
    between = np.frombuffer(separator.encode(), np.uint8)
    return Use(StringWords(most), [*encode(LINES), np.arange(room)], [between], outputs=3)


def letters() -> Use:
    table = np.arange(CODE_POINTS, dtype=np.int32)
    for old, new in zip("aäж世ẞ", "Aßж界x", strict=True):
        table[ord(old)] = ord(new)
    return Use(StringLetters(), [np.frombuffer("aäж世ẞb🙂".encode() + b"\xff\xe4\xb8", np.uint8), table])


def test_compiled_code_gives_what_the_references_give() -> None:
    words = {f"words {s!r} {most}": split(s, most, 2) for s in SEPARATORS for most in (-1, 1)}
    equal = Use(StringEqual(), [*encode(WORDS), *encode(OTHERS)])
    match = Use(StringMatch(), encode(LINES), [TABLE, ACCEPTS])
    check(words | {"equal": equal, "match": match, "letters": letters()})


@pytest.mark.parametrize("separator", SEPARATORS)
def test_words(separator: str) -> None:
    for most, room in product((-1, 0, 1, 2), (1, 2, 4)):
        use = split(separator, most, room)
        first, last, counts = interpret(graph_of(use), use.inputs)
        rows = [text.split(separator or None, most) for text in LINES]
        assert counts.tolist() == list(map(len, rows))
        words = [
            [use.inputs[2][a:b].tobytes().decode() for a, b in zip(*ends, strict=True)]
            for ends in zip(first, last, strict=True)
        ]
        assert words == [[*row, *[""] * room][:room] for row in rows], (most, room)


def test_texts_that_an_automaton_accepts() -> None:
    inputs = encode(np.array(["a", "ab,b", "", "x", "ü", "abx", "b"], object))
    (found,) = interpret(graph_of(Use(StringMatch(), inputs, [TABLE, ACCEPTS])), inputs)
    assert found.tolist() == [True, True, True, True, False, False, False]  # ü is no letter of a word, as in RE2


HUGE = ["a{99999999999}", "((a{99}){99}){9}", "(a?){200}", "(" * 3000 + ")" * 3000]
OTHER_IN_RE2 = ["(?i)a", "(?i:a)", "(?s).", "[[:alpha:]]", "a{,3}"]


@pytest.mark.parametrize("pattern", [r"(a)\1", "(?=a)", "[^ü]", "[a-ü]", "(", *HUGE, *OTHER_IN_RE2])
def test_patterns_that_are_no_automaton_are_refused(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automata, "MAX_NODES", 1 << 10)  # the real limits take seconds to reach
    monkeypatch.setattr(automata, "MAX_STEPS", 1 << 14)
    with pytest.raises(UnsupportedError, match="pattern"):
        match_table(pattern)


@pytest.mark.filterwarnings("error")
def test_patterns_mean_what_re2_says() -> None:
    """An empty part may repeat as often as it likes; \\v is no space; a set may hold a bracket."""
    table, accepts = match_table(r"((){1000000000}){1000000000}\s+(a?){300}(){0,1000000000}|[[x]b")
    inputs = encode(np.array([" a", "[b", "\v", "", " b"], object))
    (found,) = interpret(graph_of(Use(StringMatch(), inputs, [table, accepts])), inputs)
    assert found.tolist() == [True, True, False, False, False]


def test_letters_that_take_as_many_bytes() -> None:
    use = letters()
    assert use.op.evaluate(*use.inputs)[0].tobytes() == "Aßж界ẞb🙂".encode() + b"\xff\xe4\xb8"
