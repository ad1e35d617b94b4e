"""The operations of PyTorch that can be read, as a page: docs/use/models/pytorch-ops.md is made from it.

python -m aot.frontends.pt2.table > docs/use/models/pytorch-ops.md
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from importlib import import_module

from aot.frontends.pt2.graph.aliases import IN_PLACE
from aot.frontends.pt2.graph.importer import RULES
from aot.frontends.pt2.registry import CONVERSIONS, OF_COMPLEX, load_conversions

TITLE = """# Operations of PyTorch

The operations of exported programs that can be read; made by `python -m aot.frontends.pt2.table`. Names are those of
the archive without `torch.ops.aten.`. Operations in place (`add_.Tensor`) are these, followed by a write; views that
are written to are written through.
"""
DROPPED = ("_assert_tensor_metadata.default", "sym_constrain_range.default", "sym_constrain_range_for_size.default")


def families() -> dict[str, list[str]]:
    """Return the operations that have a conversion, by the family that the module of the conversion declares."""
    load_conversions()
    import_module("aot.frontends.pt2.files.reader")  # it has the rules registered
    found = defaultdict[str, list[str]](list)
    for kind, conversion in CONVERSIONS.items():
        module = import_module(conversion.__module__)
        found[(module.__doc__ or "").strip().partition("\n")[0].rstrip(".:")].append(kind)
    return found


def read_kinds() -> set[str]:
    """Return all operations that can be read: converted, or taken by the walk over a file."""
    return {k for kinds in families().values() for k in kinds} | set(RULES) | set(DROPPED)


def is_read(kind: str) -> bool:
    """True if an operation can be read, in place or not."""
    packet, _, overload = kind.partition(".")
    return bool({kind, f"{IN_PLACE.sub('', packet)}.{overload or 'default'}"} & read_kinds())


def _row(what: str, kinds: Iterable[str]) -> str:
    return f"| {what} | {' '.join(f'`{k}`' for k in sorted(kinds))} |"


def markdown() -> str:
    """Return the page."""
    found = families()
    rows = [_row(what, kinds) for what, kinds in sorted(found.items())]
    converted = {k for kinds in found.values() for k in kinds}
    rows.append(_row("Operations that take complex numbers, too", OF_COMPLEX))
    rows.append(_row("Assertions and sub-graphs", set(RULES) - converted))
    rows.append(_row("Dropped: they promise what is checked anyway", DROPPED))
    return f"{TITLE}\n{len(read_kinds())} operations.\n\n| family | operations |\n|--|--|\n" + "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.stdout.write(markdown())
