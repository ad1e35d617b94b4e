"""Errors about all that a front end cannot read in a model, in one."""

from __future__ import annotations

from collections.abc import Sequence

from aot.codegen.dataclass import dataclass
from aot.runtime.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class Problem:
    """A node that cannot be converted, and why. `opset` is 0 if none is known."""

    node: str
    kind: str
    domain: str
    opset: int
    reason: str

    @property
    def operation(self) -> str:
        return f"{self.domain}.{self.kind}" if self.domain else self.kind

    def __str__(self) -> str:
        opset = f" (opset {self.opset})" if self.opset else ""
        return f"{self.operation}{opset} in {self.node!r}: {self.reason}"


class UnconvertedError(UnsupportedError):
    """Lists all nodes that cannot be converted: `problems`, and as `text` has them."""

    def __init__(self, text: str, problems: Sequence[Problem], advice: str = "") -> None:
        self.problems = tuple(problems)
        super().__init__(text, advice=advice)


def unconverted(file: str, problems: Sequence[Problem]) -> UnconvertedError:
    """Return the error with a text for each problem."""
    nodes = "1 node is" if len(problems) == 1 else f"{len(problems)} nodes are"
    return UnconvertedError(listing(f"{file}: {nodes} not supported", list(map(str, problems))), problems)


def listing(rule: str, lines: Sequence[str]) -> str:
    """Return the text of an error: a rule, followed by one place, or by several with a line each."""
    return f"{rule}: {lines[0]}" if len(lines) == 1 else "\n  ".join([f"{rule}:", *lines])
