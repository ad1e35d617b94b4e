"""Control flow: branches, loops, scans over an axis."""

from __future__ import annotations

from typing import Any

from aot.frontends.conversion.bodies import branched
from aot.frontends.onnx.control.control_flow import scan as onnx_scan
from aot.frontends.onnx.registry import OnnxNode
from aot.frontends.pt2.registry import AtenNode, Outputs, aten_node
from aot.frontends.tf.control.loops import while_
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError


@aten_node("cond")
def cond(node: AtenNode, condition: OutPort) -> Outputs:
    return branched(node, node.cast(node.single(condition), DType.BOOL))


@aten_node("while_loop")
def while_loop(node: AtenNode, going: OutPort, *states: OutPort) -> Any:
    return while_(node, node.cast(node.single(going), DType.BOOL), *states)


@aten_node("scan")
def scan(node: AtenNode, *inputs: OutPort) -> Any:
    """Steps along axis 0 of the last `rows` inputs; results of the body after the carried values are stacked."""
    attrs = {"num_scan_inputs": node.integer("rows")}
    arguments = (node.kind, attrs, node.build, node.outputs, node.regions, node.captures, node.bodies, node.seed)
    return onnx_scan(OnnxNode(*arguments, node.node, node.inputs, opset=21), *inputs)


@aten_node("assert")
def checked(node: AtenNode, x: OutPort, *conditions: OutPort) -> OutPort:
    """`x` where all conditions hold, which is checked in each inference that could break one."""
    for condition, rule in zip(conditions, node.texts("rules"), strict=True):
        value = condition.value
        if value is None or value.dtype == object:
            x = node.demand(condition, rule, x)
        elif not value.all():
            raise ModelError(f"{node.kind}: {rule}, which these sizes break")
    return x
