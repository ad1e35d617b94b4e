"""The operations of TensorFlow that can be read, as a page: docs/use/models/tensorflow-ops.md is made from it.

python -m aot.frontends.tf.table > docs/use/models/tensorflow-ops.md
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from importlib import import_module

from aot.frontends.tf.graph.frames import FLOW
from aot.frontends.tf.graph.importer import CALLS, RULES
from aot.frontends.tf.outside.refused import REASON, REASONS
from aot.frontends.tf.registry import CONVERSIONS, load_conversions

TITLE = """# Operations of TensorFlow

The operations of TensorFlow that can be read; made by `python -m aot.frontends.tf.table`. Each conversion is compared
with TensorFlow 2.21 on cases of its own, with fixed sizes and with sizes left open.

- Random numbers are TensorFlow's for RandomUniform, RandomStandardNormal and RandomUniformInt of i32, if the file has a
  seed, in each inference those of the first one; others are of the right distribution. Without a seed: `--seed`.
- Complex tensors are two real ones between operations; an output of the network is real.
- Strings are constants, or inputs that are moved and looked up in tables.
- Integers divided by 0 give 0, and indices out of range read 0 or write nothing.
- Equal scores keep the order of their places: TopKV2, NonMaxSuppression*, CombinedNonMaxSuppression.
"""
ENDS = ("Const", "Placeholder", "PlaceholderV2")
DROPPED = ("Assert", "ControlTrigger", "NoOp", "PrintV2", "TensorArrayCloseV3")  # nothing reads data of these
REFUSED = """
## Refused

Each with the reason that the error gives. Operations in neither table have no conversion.

| reason | operations |
|--|--|
"""


def families() -> dict[str, list[str]]:
    """Return the operations that have a conversion, by the family that the module of the conversion declares."""
    load_conversions()
    found = defaultdict[str, list[str]](list)
    for kind, conversion in CONVERSIONS.items():
        if kind not in REASON:
            module = import_module(conversion.__module__)
            found[(module.__doc__ or "").strip().partition("\n")[0].rstrip(".:")].append(kind)
    return found


def read_kinds() -> set[str]:
    """Return all operations that can be read: converted, or taken by the walk over a file."""
    return {k for kinds in families().values() for k in kinds} | _walked() | set(DROPPED)


def _walked() -> set[str]:
    """Edges of a graph, calls of functions, control flow of TensorFlow 1, variables and tables."""
    import_module("aot.frontends.tf.files.reader")  # it has the rules registered
    return {*ENDS, *CALLS, *FLOW, *RULES} - set(REASON)


def _row(what: str, kinds: Iterable[str]) -> str:
    return f"| {what} | {' '.join(f'`{k}`' for k in sorted(kinds))} |"


def markdown() -> str:
    """Return the page."""
    rows = [_row(what, kinds) for what, kinds in sorted(families().items())]
    converted = {k for kinds in families().values() for k in kinds}
    rows.append(_row("Edges of a graph, functions, variables, tables, control flow", _walked() - converted))
    rows.append(_row("Dropped: no data comes from them", DROPPED))
    head = f"{TITLE}\n{len(read_kinds())} operations.\n\n| family | operations |\n|--|--|\n"
    reasons = [_row(reason, kinds) for reason, kinds in REASONS.values()]
    return head + "\n".join(rows) + "\n" + REFUSED + "\n".join(reasons) + "\n"


if __name__ == "__main__":
    sys.stdout.write(markdown())
