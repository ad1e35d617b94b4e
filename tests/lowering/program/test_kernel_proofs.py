"""Accesses of loop nests: tiles, vectors, packed panels and halos stay inside of what a call gives them."""

from __future__ import annotations

from dataclasses import replace

import onnx
import pytest

import aot
from aot.codegen.schedules.choose import choose
from aot.compilation.compilation import Compilation
from aot.compilation.sources import as_file
from aot.lowering.ir.obligations import Proof
from aot.lowering.program.build_program import ProgramBuilder
from aot.lowering.program.kernel_proofs import prove_calls

NETWORKS = {
    "convolutions": """<ir_version: 8, opset_import: ["": 17]>
        m (float[1,3,h,20] x, float[20,3,3,3] a, float[20,20,3,3] b)
        => (float[1,20,p,q] y) {
        c = Conv<pads=[1,1,1,1]>(x, a) d = Relu(c) e = MaxPool<kernel_shape=[2,2], strides=[2,2]>(d)
        y = Conv<pads=[1,1,1,1]>(e, b) }""",
    "product": """<ir_version: 8, opset_import: ["": 17]> m (float[n,k] x, float[k,m] w) => (float[n,m] y) {
        a = MatMul(x, w) y = Softmax<axis=-1>(a) }""",
    "best": """<ir_version: 8, opset_import: ["": 17]> m (float[n,20] x) => (float[n,5] v, int64[n,5] i)
        <int64[1] k={5}> { v, i = TopK(x, k) }""",
}


def built(text: str) -> ProgramBuilder:
    with as_file(onnx.parser.parse_model(text).SerializeToString()) as file:
        made: Compilation = aot.stages(file)
        builder = ProgramBuilder(made.optimized, made.steps, made.target, choose)
    builder.build()
    return builder


@pytest.mark.parametrize("name", NETWORKS)
def test_accesses_of_calls_are_proved(name: str) -> None:
    found = [*prove_calls(built(NETWORKS[name]))]
    assert sum(o.proof in (Proof.PROVED, Proof.CHECKED) for o in found) > 20
    assert [str(o) for o in found if o.proof is Proof.UNKNOWN] == []


def test_a_value_that_is_too_small_is_found() -> None:
    """The second convolution reads rows of its halo: without them in memory, that is not proved."""
    builder = built(NETWORKS["convolutions"])
    use = builder.uses[-1]
    read = next(v for n in use.values if (v := builder.steps.values[n]).buffer.origin != 0)
    builder.steps.values[read.name] = replace(read, elements=read.elements - 1)
    assert any(o.proof is Proof.UNKNOWN for o in prove_calls(builder, use.call.kernel))
