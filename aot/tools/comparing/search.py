"""The values of layers on both sides of a comparison, in bounded memory.

expected   written into files, as they are computed
actual     a batch of layers at a time, compared, and kept in files as long as later batches read them
no layer differs although the outputs do: one layer at a time is kept, by bisection, so that fusion stays as it was
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array
from aot.options import CompileOptions
from aot.options.rules import ROUNDED
from aot.precision import precision_of
from aot.runtime.abi import DType
from aot.runtime.arrays.files import Arrays
from aot.runtime.errors import AotError
from aot.runtime.loading.manifest import TensorInfo
from aot.tools.comparing.difference import BOUNDS, Difference, bound_of, difference
from aot.tools.comparing.layer_values import Layer, batches
from aot.tools.comparing.sides import Compiled, Side

BATCH_BYTES = 64 << 20  # values of layers that one library computes besides its outputs
_PASSED_ON = (DType.F64, DType.F32, DType.F16)  # types of values from which a later batch begins


@dataclass(frozen=True, slots=True)
class Row:
    """A value and its difference; `note`: why it could not be compared, and `found` is None."""

    name: str
    kind: str
    shape: str
    found: Difference | None
    note: str = ""

    @property
    def agrees(self) -> bool:
        """True unless it was compared and is beyond its bound."""
        return self.found is None or self.found.agrees


class Judge:
    """Bounds of errors: `bound` for floats if it is given, else by type and by the precision of the library.

    `bits`: of its weights, where the reference has wider ones.
    """

    def __init__(self, bound: float | None, options: CompileOptions, bits: int | None = None) -> None:
        precision = precision_of(options.precision)
        types = [dtype for dtype in (DType.BF16, DType.F16) if precision.has(dtype.value)]
        types += [DType.I8] if options.activations == ROUNDED or bits is not None else []
        types += [DType.I4] if bits is not None and bits <= DType.I4.bits else []
        self.bound, self.precision = bound, max(types, key=lambda dtype: BOUNDS[dtype], default=DType.F32)

    def output(self, info: TensorInfo, expected: Array, actual: Array) -> Row:
        return Row(info.name, "Result", str(info), self._difference(expected, actual, info.dtype))

    def layer(self, layer: Layer, expected: Array, actual: Array) -> Row:
        return Row(layer.name, layer.kind, layer.shape, self._difference(expected, actual, layer.dtype))

    def _difference(self, expected: Array, actual: Array, dtype: DType) -> Difference:
        return difference(expected, actual, bound_of(dtype, self.bound, self.precision))


class Search:
    """Layers of a model that is compiled anew, against the values that a side expects."""

    def __init__(self, expected: Side, actual: Compiled, judge: Judge, inputs: Arrays) -> None:
        self.expected, self.actual, self.judge, self.inputs = expected, actual, judge, inputs

    def run(self, layers: Sequence[Layer], bisect: bool) -> tuple[tuple[Row, ...], str | None, bool]:
        """Return the rows, the first that differs, and True if only bisection has found it."""
        with _spilled(self.expected, layers, self.inputs) as values:
            rows = self._all(layers, values)
            first = next((row.name for row in rows if not row.agrees), None)
            if first is not None or not bisect:
                return tuple(rows), first, False
            single = self._bisected([one for one in layers if one.name in values], values)
            if single is None:
                return tuple(rows), None, False
            return tuple(single if row.name == single.name else row for row in rows), single.name, True

    def _all(self, layers: Sequence[Layer], values: Mapping[str, Path]) -> list[Row]:
        runs = list(batches(layers, BATCH_BYTES))
        last = {name: n for n, run in enumerate(runs) for one in run for name in one.sources}
        rows: list[Row] = []
        with TemporaryDirectory(prefix="aot-compare-") as folder:
            known: dict[str, Array] = {}
            for n, run in enumerate(runs):
                rows += self._rows(run, values, known, {name for name, end in last.items() if end > n}, Path(folder))
                for name in [name for name in known if last[name] <= n]:
                    del known[name]
        return rows

    def _rows(
        self,
        layers: Sequence[Layer],
        values: Mapping[str, Path],
        known: dict[str, Array],
        kept: set[str],
        folder: Path | None,
    ) -> list[Row]:
        """Return a row for each layer, and keep the values of `kept`; after an error layers are computed one by one."""
        present = [one for one in layers if one.name in values]
        by_name = {one.name: one for one in present}
        rows: dict[str, Row] = {}

        def take(name: str, value: Array) -> None:
            rows[name] = self.judge.layer(by_name[name], np.load(values[name], mmap_mode="r"), value)
            if folder is not None and name in kept and by_name[name].dtype in _PASSED_ON:
                file = folder / f"{len(list(folder.iterdir()))}.npy"
                np.save(file, value)
                known[name] = np.load(file, mmap_mode="r")

        try:
            if present:
                self.actual.values(present, self.inputs, take, known)
        except AotError as error:
            if len(present) > 1:
                rows |= {row.name: row for one in present for row in self._rows([one], values, {}, set(), None)}
            else:
                rows[present[0].name] = Row(present[0].name, present[0].kind, present[0].shape, None, str(error))
        missing = "the other side has no value of this name"
        return [rows.get(one.name, Row(one.name, one.kind, one.shape, None, missing)) for one in layers]

    def _bisected(self, layers: Sequence[Layer], values: Mapping[str, Path]) -> Row | None:
        """Return the first layer that differs if it alone is kept; None if the last one does not."""
        low, high, first = 0, len(layers) - 1, None
        while low <= high:
            middle = (low + high) // 2
            row = self._rows([layers[middle]], values, {}, set(), None)[0]
            if row.agrees:
                low = middle + 1
            else:
                high, first = middle - 1, row
        return first


@contextmanager
def _spilled(side: Side, layers: Sequence[Layer], inputs: Arrays) -> Generator[dict[str, Path]]:
    """Write values of layers into a folder that ends with the context; gives the files by name."""
    with TemporaryDirectory(prefix="aot-compare-") as folder:
        files: dict[str, Path] = {}

        def take(name: str, value: Array) -> None:
            floats = value.astype(np.float32) if value.dtype.kind == "V" else value
            files[name] = Path(folder, f"{len(files)}.npy")
            np.save(files[name], floats)

        for run in [list(layers)] if side.streams else batches(layers, BATCH_BYTES):
            side.values(run, inputs, take)
        yield files
