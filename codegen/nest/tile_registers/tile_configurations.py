"""Configurations of tile registers: one for as many statements as use the same, and an end.

configure                     16 rows of 64 bytes, ...
for j in 8:
  tile 0 += tile 4 * tile 6
release
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from aot.codegen.ir.loops import Alloc, For, If, Let, TileOp, While
from aot.codegen.nest.points import Stmts

RELEASE = TileOp("release")
NESTED = (For, While, Let, Alloc)


def with_tiles(stmts: Stmts) -> Stmts:
    """Move configurations of tiles out of loops, as far as these need no other one; release the tiles at the end."""
    tile_ops = set(_configurations(stmts))
    return (*_configured(stmts), RELEASE) if tile_ops else stmts


def _configured(stmts: Stmts) -> Stmts:
    configurations = dict.fromkeys(_configurations(stmts))
    if len(configurations) == 1:
        return (*configurations, *_without(stmts))
    statements: Stmts = ()
    for s in stmts:
        own_configurations = dict.fromkeys(_configurations((s,)))
        if isinstance(s, TileOp) or not own_configurations:
            statements += (s,)
        elif len(own_configurations) == 1:
            statements += (*own_configurations, *_without((s,)))
        elif isinstance(s, If):
            statements += (replace(s, body=_configured(s.body), otherwise=_configured(s.otherwise)),)
        elif not isinstance(s, NESTED):
            statements += (s,)
        else:
            statements += (replace(s, body=_configured(s.body)),)
    return statements


def _configurations(stmts: Stmts) -> Iterator[TileOp]:
    for s in stmts:
        if isinstance(s, TileOp):
            if s.op == "configure":
                yield s
        elif isinstance(s, If):
            yield from _configurations((*s.body, *s.otherwise))
        elif isinstance(s, NESTED):
            yield from _configurations(s.body)


def _without(stmts: Stmts) -> Stmts:
    statements: Stmts = ()
    for s in stmts:
        if isinstance(s, TileOp) and s.op == "configure":
            continue
        if isinstance(s, If):
            statements += (replace(s, body=_without(s.body), otherwise=_without(s.otherwise)),)
        elif isinstance(s, NESTED):
            statements += (replace(s, body=_without(s.body)),)
        else:
            statements += (s,)
    return statements
