"""`aot rewrite`: why a rule rewrites a node, or does not."""

from __future__ import annotations

from typing import Annotated

from aot.commands.line import arguments as arg
from aot.commands.line.declared import echo, option
from aot.options import CompileOptions


def rewrite(
    model: arg.Model,
    explain: Annotated[
        str, option("--explain", metavar="RULE", help="Name of a rule, of a set of rules, or of a class")
    ],
    options: CompileOptions,
    limit: Annotated[int, option(min=1, metavar="N", help="Print at most N attempts")] = 20,
    debug: arg.Debug = False,
) -> None:
    """Show the nodes that a rule rewrites, and why others stay.

    For others, it says how far the pattern matched and where it stopped.
    """
    from aot.tools.why_not import attempts

    tried = attempts(model, explain, options)
    echo("\n".join(map(str, tried[:limit])) or f"{explain}: no operation that it is for")
    if len(tried) > limit:
        echo(f"and {len(tried) - limit} more (--limit)")
