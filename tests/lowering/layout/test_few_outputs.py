"""Products with a few outputs beside each other: lanes along the sum, and rows that share the weights in registers."""

from __future__ import annotations

import pytest

from aot.codegen.ir.printer import schedule_text
from aot.codegen.schedules.request import Request
from aot.codegen.schedules.rows import rows
from aot.compilation.compilation import Compilation
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from tests.codegen.schedules.test_choose import FAR, product
from tests.lowering.check import compiled, conv, weights


def schedules(made: Compilation) -> str:
    return "\n".join(line for line in made.groups.splitlines() if "tile[" in line)


@pytest.mark.parametrize(("columns", "height", "together"), [(2, 3, 2), (3, 2, 3), (6, 2, 3)])
def test_rows_of_a_tile_fill_the_registers(columns: int, height: int, together: int) -> None:
    """16 of them: two halves of a weight of each column, and of its sum in each row; six columns in two parts."""
    d = product(64, columns, 128)
    plan, _ = rows(Request(d, FAR, frozenset({"w"})))
    assert schedule_text(plan).startswith(f"order[i j] tile[i:{height} j:{together}] lanes[k:16]")


def test_one_output_has_partial_sums() -> None:
    assert rows(Request(product(64, 1, 128), FAR, frozenset({"w"})))[0].partials == 4


@pytest.mark.parametrize(
    ("outputs", "channels", "kernel", "stride", "target"),
    [
        (3, 40, 3, 1, "native"),
        (3, 64, 3, 2, "x86-64-v3"),
        (2, 33, 5, 1, "native"),
        (3, 16, 1, 1, "x86-64-v2"),
        (3, 7, 3, 1, "x86-64-v3"),
        (3, 40, 3, 1, "x86-64-v2"),
    ],
)
def test_pictures_of_few_channels(outputs: int, channels: int, kernel: int, stride: int, target: str) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        inner = conv(b, x, channels, 1, begin=(0, 0))
        pad = kernel // 2
        return b.Relu(conv(b, inner, outputs, kernel, stride=stride, begin=(pad, pad)))

    made = compiled(make, (1, 8, 13, 22), target=target)
    assert len(made.program.calls) >= 2


def test_a_transposed_convolution_to_three_channels() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.ConvolutionBackpropData(
            x, weights(b, 32, 3, 4, 4), strides=(2, 2), pads_begin=(1, 1), pads_end=(1, 1), dilations=(1, 1),
            output_padding=(0, 0),
        )  # fmt: skip

    assert "c:3" in schedules(compiled(make, (1, 32, 9, 11), target="x86-64-v3"))


@pytest.mark.parametrize(("rows", "tile"), [(1, None), (5, "i:5"), (100, "j:3")])
def test_a_product_with_three_columns(rows: int, tile: str | None) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.MatMul(x, weights(b, 70, 3), transpose_a=False, transpose_b=False)

    found = schedules(compiled(make, (rows, 70)))
    assert found == "" if tile is None else tile in found
