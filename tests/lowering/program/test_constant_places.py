"""Parameters of kernels: one for each way in which a constant is packed. Bytes of constants: made in pieces."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import aot.lowering.program.constant_places
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Reduce, Var, dense
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.schedule import Pack, Schedule, ScheduleError
from aot.codegen.nest.nest import apply
from aot.codegen.nest.packed_arrays import pack_array
from aot.ir.types import dtype_of
from aot.lowering.ir.steps import Value
from aot.lowering.program.constant_places import Constants, Weights
from aot.lowering.program.kernel_parameters import separated

ROW, J, K = Var("i", 4), Var("j", 8), Var("k", 8)
X, W, Y, Z = dense("x0", 4, 8), dense("w0", 8, 8), dense("y0", 4, 8), dense("y1", 4, 8)
PLAIN = Definition(Y, (ROW, J), Reduce("add", (K,), X[ROW, K] * W[K, J]))
TURNED = Definition(Z, (ROW, J), Reduce("add", (K,), X[ROW, K] * W[J, K]))
PACKS = (Pack("w0", (1, 0), 1, 8), Pack("w0", (0, 1), 0, 8))
PARAMS = (X, W, Y, Z)


def test_each_packing_of_a_constant_is_a_parameter() -> None:
    names = {"w0": "weights", "x0": "data"}
    plans = tuple(Schedule(pack=(p,)) for p in PACKS)
    works, schedules, packs = separated((PLAIN, TURNED), plans, frozenset({"w0"}), names)
    assert len(works) == 2 and set(packs) == {"w0", "w1"}
    assert names["w1"] == "weights" and packs["w1"].order == (0, 1)
    assert [s.pack[0].operand for s in schedules] == ["w0", "w1"]


def test_equal_packings_share_a_parameter() -> None:
    names = {"w0": "weights", "x0": "data"}
    plans = (Schedule(pack=PACKS[:1]),) * 2
    _, schedules, packs = separated((PLAIN, PLAIN), plans, frozenset({"w0"}), names)
    assert set(packs) == {"w0"} and "w1" not in names
    assert {s.pack[0].operand for s in schedules} == {"w0"}


def test_a_parameter_has_one_packing() -> None:
    plans = tuple(Schedule(pack=(p,)) for p in PACKS)
    with pytest.raises(ScheduleError, match="packed in one way only"):
        apply("two", (PLAIN, TURNED), plans, PARAMS)


def _bytes(data: np.ndarray, plan: Pack | None, dtype: type[np.generic]) -> np.ndarray:
    """Return the bytes that a constant has in a library, where it is stored as `dtype`."""
    buffer = dense("w0", *data.shape, dtype=dtype_of(np.empty(0, dtype)))
    constants = Constants(Weights())
    constants.add(Value(buffer, MemoryRegion.CONSTANT, data=data), plan)
    (block,) = constants.blocks
    return np.concatenate(list(block.pieces()))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(
    "plan",
    [
        None,
        Pack("w0", (0, 1), 0, 8),
        Pack("w0", (1, 0), 1, 8),
        Pack("w0", (1, 0), 0, 8),
        Pack("w0", (0, 1), 0, 8, words=1),
        Pack("w0", (0, 1), 0, 8, words=2),
    ],
    ids=str,
)
def test_pieces_of_a_constant_are_all_of_it(
    monkeypatch: pytest.MonkeyPatch, plan: Pack | None, dtype: type[np.generic]
) -> None:
    monkeypatch.setattr(aot.lowering.program.constant_places, "PIECE", 100)
    data = np.arange(37 * 12, dtype=np.float32).reshape(37, 12)
    stored = data.astype(dtype)
    whole = stored if plan is None else pack_array(stored, plan)
    assert np.array_equal(_bytes(data, plan, dtype), np.ascontiguousarray(whole).reshape(-1).view(np.uint8))


def test_packing_takes_no_memory_for_all_of_a_constant() -> None:
    data = np.zeros((1 << 12, 1 << 11), np.float32)
    constants = Constants(Weights())
    constants.add(Value(dense("w0", *data.shape), MemoryRegion.CONSTANT, data=data), Pack("w0", (0, 1), 0, 16))
    (block,) = constants.blocks
    tracemalloc.start()
    assert sum(piece.nbytes for piece in block.pieces()) == data.nbytes
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < data.nbytes / 2
