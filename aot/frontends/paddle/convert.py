"""The dialect of PaddlePaddle: conversions of operations, and their view of a node."""

from __future__ import annotations

from aot.frontends.conversion.dialect import Dialect, Facts
from aot.frontends.conversion.node_context import Conversion
from aot.frontends.paddle.registry import CONVERSIONS, PaddleNode


class _Paddle(Dialect):
    """An operation with a name that ends with `_` computes in place, which is the same here."""

    def conversion(self, kind: str, attrs: Facts) -> Conversion | None:
        del attrs
        return self.table.of(kind) or self.table.of(kind.rstrip("_"))


PADDLE = _Paddle("paddle", "PaddlePaddle", CONVERSIONS, PaddleNode)
