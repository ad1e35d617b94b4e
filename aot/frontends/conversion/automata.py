"""Regular expressions as tables: the automaton that decides whether a whole string of UTF-8 matches.

a(b|c)*  ->  states 0, 1, 2 with their next states [states, 256], and which of them accept
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from aot.ir.types import Array
from aot.runtime.errors import UnsupportedError

parser: Any = import_module("re._parser")  # of Python's expressions, most of which mean the same here; without types
sre: Any = import_module("re._constants")

MAX_STATES = 1 << 12
MAX_NODES = 1 << 14
MAX_STEPS = 1 << 22  # nodes that are visited while states are made: some seconds
# what means something else in RE2, whose patterns these are: classes of POSIX, and {,n}, which are characters there
OTHER_MEANING = re.compile(r"\[:\^?[a-z]+:\]|\{,\d*\}")
WORD = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")
OTHERS = frozenset(range(256)) - WORD
ASCII = frozenset(range(128))
CLASSES: dict[Any, frozenset[int]] = {
    sre.CATEGORY_WORD: WORD,
    sre.CATEGORY_DIGIT: frozenset(b"0123456789"),
    sre.CATEGORY_SPACE: frozenset(b" \t\n\r\f"),  # without \v, as in RE2
}
OPPOSITES: dict[Any, Any] = {
    sre.CATEGORY_NOT_WORD: sre.CATEGORY_WORD,
    sre.CATEGORY_NOT_DIGIT: sre.CATEGORY_DIGIT,
    sre.CATEGORY_NOT_SPACE: sre.CATEGORY_SPACE,
}
CONTINUATION = frozenset(range(0x80, 0xC0))
LEADS = (range(0xC2, 0xE0), range(0xE0, 0xF0), range(0xF0, 0xF5))  # first bytes of characters of 2, 3 and 4 bytes
AT: dict[Any, Callable[[str, str], bool]] = {
    sre.AT_BEGINNING: lambda before, after: before == "edge",
    sre.AT_BEGINNING_STRING: lambda before, after: before == "edge",
    sre.AT_END: lambda before, after: after == "edge",
    sre.AT_END_STRING: lambda before, after: after == "edge",
    sre.AT_BOUNDARY: lambda before, after: (before == "word") is not (after == "word"),
    sre.AT_NON_BOUNDARY: lambda before, after: (before == "word") is (after == "word"),
}  # True if a place matches between what is before and after it: the edge of the text, a letter of a word, another one


def match_table(pattern: str) -> tuple[Array, Array]:
    """Return the next state for each state and byte, i32 [states, 256], and 1 for each state that accepts, i32.

    The pattern means what RE2 says. UnsupportedError for what no automaton can do (look-ahead, references to groups),
    for flags and classes of POSIX, and for a pattern that needs too many nodes, states or steps.
    """
    if match := OTHER_MEANING.search(pattern):
        raise UnsupportedError(f"patterns without {match[0]} can be read, got {pattern[:80]!r}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of [[a], which is a set with a bracket in RE2, too
            parsed: Any = parser.parse(pattern, re.ASCII)
        if parsed.state.flags & ~re.ASCII:
            raise UnsupportedError(f"patterns without flags can be read, got {pattern[:80]!r}")
        nodes = _Nodes()
        first = nodes.add()
        return nodes.determined(first, nodes.sequence(parsed, first))
    except (re.error, OverflowError, RecursionError) as error:
        raise UnsupportedError(f"the pattern {pattern[:80]!r} cannot be read: {error}") from None


class _Nodes:
    """A nondeterministic automaton: edges by bytes, and free edges, which may ask for a place."""

    def __init__(self) -> None:
        self.by_bytes: list[list[tuple[frozenset[int], int]]] = []
        self.free: list[list[tuple[Any, int]]] = []
        self.steps = 0

    def add(self) -> int:
        """Return the number of a new node."""
        if len(self.free) >= MAX_NODES:
            raise UnsupportedError(f"a pattern has at most {MAX_NODES} places once its repetitions are written out")
        self.by_bytes.append([])
        self.free.append([])
        return len(self.free) - 1

    def sequence(self, items: Iterable[Any], at: int) -> int:
        for kind, value in items:
            at = self.item(kind, value, at)
        return at

    def item(self, kind: Any, value: Any, at: int) -> int:
        """Return the node after one part of a pattern that begins at node `at`."""
        match kind:
            case sre.LITERAL:
                return self.text(chr(value).encode(), at)
            case sre.NOT_LITERAL:
                return self.characters(_set([(sre.NEGATE, None), (sre.LITERAL, value)]), at)
            case sre.ANY:
                return self.characters((ASCII - frozenset(b"\n"), True, ()), at)
            case sre.IN:
                return self.characters(_set(value), at)
            case sre.BRANCH:
                return self.branches(value[1], at)
            case sre.SUBPATTERN if not value[1] and not value[2]:  # flags that the group sets, and clears
                return self.sequence(value[3], at)
            case sre.MAX_REPEAT | sre.MIN_REPEAT:
                least, most, items = value
                return self.repeated(least, most, items, at)
            case sre.AT if value in AT:
                end = self.add()
                self.free[at].append((value, end))
                return end
            case _:
                raise UnsupportedError(f"patterns have no {str(kind).lower()} here")

    def text(self, data: bytes, at: int) -> int:
        for byte in data:
            end = self.add()
            self.by_bytes[at].append((frozenset((byte,)), end))
            at = end
        return at

    def characters(self, chosen: tuple[frozenset[int], bool, Sequence[str]], at: int) -> int:
        """Add one character: of ASCII, any other one, or one of some others."""
        own, others, few = chosen
        end = self.add()
        self.by_bytes[at].append((own, end))
        for character in few:
            self.free[self.text(character.encode(), at)].append((None, end))
        for more, leads in enumerate(LEADS, 1) if others else ():
            state = self.add()
            self.by_bytes[at].append((frozenset(leads), state))
            for k in range(more):
                after = end if k == more - 1 else self.add()
                self.by_bytes[state].append((CONTINUATION, after))
                state = after
        return end

    def branches(self, each: Sequence[Any], at: int) -> int:
        end = self.add()
        for items in each:
            self.free[self.sequence(items, at)].append((None, end))
        return end

    def repeated(self, least: int, most: Any, items: Any, at: int) -> int:
        for _ in range(least):
            before, at = at, self.sequence(items, at)
            if at == before:
                return at  # an empty part, which needs no repetition
        end = self.add()
        if most is sre.MAXREPEAT:
            loop = self.add()
            self.free[at].append((None, loop))
            self.free[self.sequence(items, loop)].append((None, loop))
            self.free[loop].append((None, end))
            return end
        for _ in range(most - least):
            self.free[at].append((None, end))
            before, at = at, self.sequence(items, at)
            if at == before:
                break
        self.free[at].append((None, end))
        return end

    def closed(self, nodes: Iterable[int], before: str, after: str) -> frozenset[int]:
        """Return the nodes that free edges lead to between what is before and after."""
        reached, stack = set[int](), list(nodes)
        while stack:
            node = stack.pop()
            if node not in reached:
                reached.add(node)
                stack += [end for place, end in self.free[node] if place is None or AT[place](before, after)]
        self.steps += len(reached)
        if self.steps > MAX_STEPS:
            raise UnsupportedError(f"the states of a pattern are made in at most {MAX_STEPS} steps, got more")
        return frozenset(reached)

    def determined(self, first: int, last: int) -> tuple[Array, Array]:
        """Return the deterministic automaton's tables: states are sets of nodes with the character class before."""
        numbers = {(frozenset((first,)), "edge"): 0}
        rows: list[list[int]] = []
        accepts: list[int] = []
        states = list(numbers)
        for nodes, before in states:  # grows
            accepts.append(int(last in self.closed(nodes, before, "edge")))
            row: list[int] = []
            ends = [set[int]() for _ in range(256)]
            for after, kinds in (("word", WORD), ("other", OTHERS)):
                for node in self.closed(nodes, before, after):
                    for byte_set, end in self.by_bytes[node]:
                        for byte in byte_set & kinds:
                            ends[byte].add(end)
            for byte in range(256):
                state = (frozenset(ends[byte]), "word" if byte in WORD else "other")
                if state not in numbers:
                    if len(numbers) >= MAX_STATES:
                        raise UnsupportedError(f"a pattern has at most {MAX_STATES} states, got more")
                    numbers[state] = len(numbers)
                    states.append(state)
                row.append(numbers[state])
            rows.append(row)
        return np.array(rows, np.int32), np.array(accepts, np.int32)


def _set(items: Iterable[Any]) -> tuple[frozenset[int], bool, Sequence[str]]:
    """Return a set's characters of ASCII, True if it has all others, and the other characters that it has."""
    own, negated, few = frozenset[int](), False, list[str]()
    for kind, value in items:
        match kind:
            case sre.NEGATE:
                negated = True
            case sre.LITERAL if value < len(ASCII):
                own |= {value}
            case sre.LITERAL if not negated:
                few.append(chr(value))
            case sre.RANGE if value[1] < len(ASCII):
                own |= set(range(value[0], value[1] + 1))
            case sre.CATEGORY if value in CLASSES:
                own |= CLASSES[value]
            case sre.CATEGORY if value in OPPOSITES and not negated:
                return (ASCII - CLASSES[OPPOSITES[value]]) | own, True, ()
            case _:
                raise UnsupportedError("ranges of characters, and those that are left out, are of ASCII in patterns")
    return (ASCII - own, True, ()) if negated else (own, False, few)
