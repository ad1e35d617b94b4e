"""A model for engines that hand over tables: columns of a batch become inputs, outputs become columns.

{"image": (500, 64) f64}   ->   blocks of rows that it takes, f32 (n, 1, 8, 8)   ->   {"probabilities": (500, 10)}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy as np

from aot.runtime.arrays.tensors import Array, numpy_dtype
from aot.runtime.errors import UsageError
from aot.runtime.loading.manifest import Dim, TensorInfo
from aot.runtime.model import CompiledModel, load

Columns = Mapping[str, Any]


class Predictor:
    """A compiled model as a function of columns, for Ray, Spark, Beam, Dask and MLflow.

    It is pickled as path and hash and opens the file again in each process; all processes of a machine share its code
    and weights.
    """

    def __init__(self, model: str | PathLike[str] | CompiledModel, threads: int | None = 1, rows: int = 64) -> None:
        """`threads`: of one inference; None: as many as the process may use. `rows`: at most that many in an inference,
        if the model lets them vary.
        """
        self.model = model if isinstance(model, CompiledModel) else load(model, threads)
        if rows < 1:
            raise UsageError(f"predictor: rows must be 1 or more, got {rows}")
        tensors = (*self.model.inputs, *self.model.outputs)
        if not all(info.shape for info in tensors):
            raise UsageError("predictor: inputs and outputs must have rows along their first dimension, got a scalar")
        first = self.model.inputs[0].shape[0]
        if any(str(info.shape[0]) != str(first) for info in tensors):
            raise UsageError(f"predictor: inputs and outputs must have as many rows as each other, got {self.model}")
        self._fixed = isinstance(first, int)
        self._rows = first if isinstance(first, int) else min(rows, first.high or rows)

    def __call__(self, batch: Columns) -> dict[str, Array]:
        """Return the outputs for a batch, by name; columns that are no inputs are left out.

        A column holds an array a row, or numbers; rows may be flat. UsageError for a column that is missing, or whose
        elements or numbers of elements do not fit.
        """
        inputs = {info.name: self._column(info, batch) for info in self.model.inputs if self._has_column(info, batch)}
        counts = {len(array) for array in inputs.values()}
        if len(counts) != 1:
            raise UsageError(f"predictor: columns must have equal numbers of rows, got {sorted(counts)}")
        [count] = counts
        parts = [self._infer(inputs, at, count) for at in range(0, count, self._rows)]
        if not parts:
            return {info.name: np.empty((0, *map(_extent, info.shape[1:])), numpy_dtype(info)) for info in self.outputs}
        return {info.name: np.concatenate([part[k] for part in parts]) for k, info in enumerate(self.outputs)}

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """The outputs, in order."""
        return self.model.outputs

    def predict(self, model_input: object, params: object = None) -> dict[str, Array]:
        """Return the outputs for a table of pandas, a mapping of columns, or the array of the only input.

        The interface of MLflow's `pyfunc`; `params` are ignored.
        """
        del params
        if isinstance(model_input, Mapping):
            return self(cast(Columns, model_input))
        if hasattr(model_input, "columns"):
            table = cast(Any, model_input)
            arrays = [table[name].to_numpy() for name in table.columns]
            return self(dict(zip(self._names(list(map(str, table.columns))), arrays, strict=True)))
        return self({self.model.inputs[0].name: model_input})

    def add_columns(self, batch: Columns) -> dict[str, Any]:
        """Return the batch with the outputs as further columns."""
        return {**batch, **self(batch)}

    def _names(self, columns: list[str]) -> list[str]:
        """Return names of columns; columns that are called by their places only, 0, 1 …, get those of the inputs."""
        inputs = [info.name for info in self.model.inputs]
        by_place = columns == [str(k) for k in range(len(columns))] and len(columns) <= len(inputs)
        return inputs[: len(columns)] if by_place and not set(columns) & set(inputs) else columns

    def _has_column(self, info: TensorInfo, batch: Columns) -> bool:
        if info.name not in batch and info.default is None:
            raise UsageError(f"predictor: there must be a column '{info.name}', got {', '.join(batch)}")
        return info.name in batch

    def _column(self, info: TensorInfo, batch: Columns) -> Array:
        try:
            array = _dense(batch[info.name])
        except ValueError as error:
            raise UsageError(f"predictor: rows of '{info.name}' must have equal sizes, got {error}") from None
        dtype = numpy_dtype(info)
        if not (np.can_cast(array.dtype, dtype, "same_kind") and array.dtype.kind in "biuf"):
            raise UsageError(f"predictor: '{info.name}' must be {info}, got {array.dtype.name}")
        array = np.ascontiguousarray(array, dtype)
        row = info.shape[1:]
        if len(array) and array.ndim != len(info.shape) and all(isinstance(dim, int) for dim in row):
            size = prod(cast(tuple[int, ...], row))
            if array.size != len(array) * size:
                raise UsageError(f"predictor: a row of '{info.name}' must have {size} numbers, got {array.shape[1:]}")
            array = array.reshape(len(array), *cast(tuple[int, ...], row))
        return array

    def _infer(self, inputs: dict[str, Array], at: int, count: int) -> list[Array]:
        rows = min(self._rows, count - at)
        part = {name: array[at : at + rows] for name, array in inputs.items()}
        if self._fixed and rows < self._rows:  # the last row again, up to the number that the model takes
            part = {name: np.concatenate([a, np.repeat(a[-1:], self._rows - rows, 0)]) for name, a in part.items()}
        return [array[:rows] for array in self.model(part).to_tuple()]


def predict_batch(path: str | PathLike[str], output: str | None = None, **options: Any) -> Callable[[], Any]:
    """Return the argument of Spark's `predict_batch_udf`: a function that opens the model in a worker.

    `output`: the one to return; None: the only one, or a dictionary of all. `options`: those of Predictor.
    """
    file = str(Path(path).resolve())

    def make() -> Callable[..., Array | dict[str, Array]]:
        predictor = Predictor(file, **options)
        names = [info.name for info in predictor.model.inputs]
        only = output or (predictor.outputs[0].name if len(predictor.outputs) == 1 else None)

        def predict(*columns: Array) -> Array | dict[str, Array]:
            outputs = predictor(dict(zip(names, columns, strict=True)))
            return outputs if only is None else outputs[only]

        return predict

    return make


def _load_pyfunc(path: str) -> Predictor:
    """Return the model at `path`: MLflow's entry point, for `loader_module="aot.runtime.predictor"`."""
    place = Path(path)
    return Predictor(next(iter(sorted(place.glob("*.so")))) if place.is_dir() else place)


def _dense(column: object) -> Array:
    """Return a column as one array: engines hand over arrays of arrays."""
    array = np.asarray(column)
    if array.dtype.kind != "O":
        return array
    rows = cast(Sequence[object], array.tolist() if array.ndim > 1 else list(array))
    return np.stack([np.asarray(row) for row in rows]) if rows else np.empty(0)


def _extent(dim: int | Dim) -> int:
    return dim if isinstance(dim, int) else 0
