"""IF and WHILE of a foreign graph."""

from __future__ import annotations

from typing import Any

from aot.frontends.conversion.bodies import branched
from aot.frontends.tf.control.loops import while_
from aot.frontends.tflite.registry import Outputs, TfliteNode, tflite
from aot.ir.graph import OutPort
from aot.runtime.abi import DType


@tflite("IF", stored=True)
def if_(node: TfliteNode, condition: OutPort) -> Outputs:
    return branched(node, node.cast(node.single(condition), DType.BOOL))


@tflite("WHILE", stored=True)
def loop(node: TfliteNode, going: OutPort, *states: Any) -> Any:
    return while_(node, node.cast(node.single(going), DType.BOOL), *states)
