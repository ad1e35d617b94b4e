"""If of a foreign graph; the reader writes Case as Ifs."""

from __future__ import annotations

from aot.frontends.conversion.bodies import branched
from aot.frontends.tf.registry import Outputs, TfNode, tf
from aot.ir.graph import OutPort
from aot.runtime.abi import DType


@tf("If")
def if_(node: TfNode, condition: OutPort) -> Outputs:
    return branched(node, node.cast(node.single(condition), DType.BOOL))
