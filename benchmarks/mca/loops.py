"""Innermost loops in assembly, with what they are made of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

ARITHMETIC = re.compile(r"(?:f(?:add|sub|mul|mla|mls)|[us]{0,2}dot|[us]{0,2}mmla|bfdot|bfmmla|bfmlal[bt])\tv")
STACK = re.compile(r"\[sp|\(%rsp")
_FUNCTION = re.compile(r'"?([A-Za-z_][\w.$]*)"?:')
_LABEL = re.compile(r"(\.L[\w$]+):")
_BRANCH = re.compile(r"(?:j\w+|b\.\w+|cbn?z)\s+.*?(\.L[\w$]+)$")


@dataclass(frozen=True, slots=True)
class Loop:
    """The instructions of an innermost loop, with the name of its function."""

    function: str
    body: tuple[str, ...]

    @property
    def arithmetic(self) -> tuple[str, ...]:
        """Names of the instructions of vectors that multiply and add."""
        return tuple(line.split("\t", 1)[0] for line in self.body if ARITHMETIC.match(line))

    @property
    def instruction(self) -> str:
        """The most frequent one of them."""
        names = self.arithmetic
        return max(sorted(set(names)), key=names.count, default="none")

    @property
    def spills(self) -> int:
        """Number of accesses to the stack."""
        return sum(bool(STACK.search(line)) for line in self.body)


def inner_loops(text: str) -> Iterator[Loop]:
    """Yield the loops of assembly that have no other loop or branch inside."""
    lines = [line.strip() for line in text.splitlines()]
    function, start = "", -1
    for i, line in enumerate(lines):
        if (found := _FUNCTION.match(line)) is not None:
            function = found[1]
        if _LABEL.match(line):
            start = i
        jump = _BRANCH.match(line)
        if jump and start >= 0 and lines[start].startswith(jump[1] + ":"):
            yield Loop(function, tuple(lines[start + 1 : i + 1]))
