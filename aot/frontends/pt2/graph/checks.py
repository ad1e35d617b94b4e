"""Assertions of a program become checks at run time: outputs exist only where all of them hold.

_assert_scalar(k >= 1, "..."), return y     ->     return assert(y, k >= 1)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from aot.frontends.pt2.graph.importer import Check, Item, ProgramImporter, rule
from aot.frontends.pt2.registry import Argument
from aot.ir.graph import OutPort
from aot.ir.op import Foreign
from aot.ir.origin import Origin

EXPRESSION = re.compile(r"Runtime assertion failed for expression (.*) on node '[^']*'")
MAX_RULE = 200  # characters of a message that are kept


@rule("_assert_scalar.default", "_assert_async.default", "_assert_async.msg")
def asserted(importer: ProgramImporter, item: Item) -> Sequence[OutPort]:
    """Keep the condition; assertions of branches and loops are left out, since they hold where these run."""
    arguments, ports = importer.arguments(item)
    first, *rest = arguments.values()
    text = next((str(t) for t in rest if isinstance(t, str)), "a condition holds")
    match = EXPRESSION.fullmatch(text)
    where = f" ({item.trace})" if item.trace else ""
    if isinstance(first, Argument) and not importer.conditional:
        importer.checks.append(Check(ports[first.index], f"{(match[1] if match else text)[:MAX_RULE]}{where}"))
    return []


def checked(importer: ProgramImporter, port: OutPort, name: str) -> OutPort:
    """Return an output that exists only where all assertions hold."""
    if not importer.checks:
        return port
    rules = tuple(check.rule for check in importer.checks)
    op = Foreign("aten", "assert", cast("tuple[tuple[str, object], ...]", (("rules", rules),)))
    inputs = [check.port for check in importer.checks]
    return importer.scope.graph.add(
        op, port, *inputs, name=f"{name}/assert", origin=Origin((name,), importer.file)
    ).out_port(0)
