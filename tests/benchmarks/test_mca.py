"""Inner loops on aarch64 keep the units of vectors busy, by LLVM's models of processors, and leave the stack alone."""

from __future__ import annotations

import pytest

from benchmarks.mca import measure
from benchmarks.mca.layers import LAYERS, loops_of
from benchmarks.mca.loops import inner_loops
from benchmarks.mca.model import LEVELS, find_mca, share
from benchmarks.mca.networks import counted

pytestmark = pytest.mark.default_code
REASON = "needs llvm-mca of LLVM 17 or newer, as in the package llvm-19"
modelled = pytest.mark.skipif(find_mca() is None, reason=REASON)
N1, V1, V2 = LEVELS

TEXT = """
"k0.matmul":
.LBB0_1:
	fmla	v0.4s, v1.4s, v2.s[0]
.LBB0_2:
	ldr	q3, [sp, #16]
	fmla	v4.4s, v3.4s, v2.s[1]
	fmla	v5.4s, v3.4s, v2.s[2]
	fadd	v6.4s, v4.4s, v5.4s
	subs	x8, x8, #1
	b.ne	.LBB0_2
	b.ne	.LBB0_1
"""


def test_the_innermost_loop_is_found() -> None:
    (loop,) = inner_loops(TEXT)
    assert (loop.function, len(loop.body)) == ("k0.matmul", 6)
    assert (loop.arithmetic, loop.instruction, loop.spills) == (("fmla", "fmla", "fadd"), "fmla", 1)


def test_blocks_of_one_address_are_added() -> None:
    """An emulator may translate a block again."""
    assert counted("a line\nblock 4a0 7 2\nblock 4c0 3 5\nblock 4a0 7 1\n") == {(0x4A0, 7): 3, (0x4C0, 3): 5}


LEAST = [
    *(("int8 matmul", cpu, least) for cpu, least in ((N1, 0.95), (V1, 0.90), (V2, 0.90))),
    *(("int8 1x1", cpu, least) for cpu, least in ((N1, 0.95), (V2, 0.90))),
    *(("int8 3x3", cpu, least) for cpu, least in ((N1, 0.95), (V2, 0.90))),
    *(("bf16 matmul", cpu, 0.95) for cpu in (V1, V2)),
    *(("f16 matmul", cpu, 0.98) for cpu in (N1, V2)),
    *((layer, cpu, 0.98) for layer in ("f32 matmul", "f32 1x1") for cpu in (N1, V2)),
    ("u4 weights, 32 tokens", V2, 0.78),
    *(("f32 depthwise 3x3", cpu, least) for cpu, least in ((N1, 0.70), (V2, 0.80))),
]


@modelled
@pytest.mark.parametrize(("layer", "cpu", "least"), LEAST, ids=[f"{layer}, {cpu}" for layer, cpu, _ in LEAST])
def test_units_are_busy(layer: str, cpu: str, least: float) -> None:
    loop = loops_of(layer, LEVELS[cpu])[-1]
    assert share(loop, cpu) >= least
    assert loop.spills == 0


@pytest.mark.parametrize("level", ["aarch64-v8.2", "aarch64-v8.6"])
@pytest.mark.parametrize(
    "layer", [name for name in LAYERS if name.startswith(("int8", "u4", "f32 m", "f32 1", "f32 d"))]
)
def test_loops_of_products_leave_the_stack_alone(layer: str, level: str) -> None:
    *before, product = loops_of(layer, level)
    assert product.spills == 0
    # data that are rounded to bytes are summed, too: 64 partial sums, as on all targets, are 16 of the 32 registers
    assert all(loop.spills <= 4 and loop.function.endswith("quantise") for loop in before)


def test_layers_are_timed_on_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    measure.main(["u4 weights, a token", "--seconds", "0"])
    _, _, *rows = capsys.readouterr().out.splitlines()
    assert [row.split(" | ")[1] for row in rows] == measure.levels()
    assert all(float(row.split(" | ")[2]) > 0 for row in rows)
