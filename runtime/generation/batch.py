"""Sequences that go on together: one inference appends a token to each, and reads the weights once for all.

batch = Batch(model)
batch.add(generator)            a sequence that has been fed becomes the last row
batch.step([7, 7, 40])          a token for each row; logits [rows, vocabulary]
batch.remove(0)                 the last row takes its place
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.runtime.arrays.tensors import Array
from aot.runtime.errors import UsageError
from aot.runtime.generation.generator import Generator
from aot.runtime.generation.interface import IDS, MASK, PLACES, ROWS, has_row_lengths, logits_of
from aot.runtime.model import CompiledModel


class Batch:
    """Rows of one request, each with a sequence of its own length; logits are those of the sequences alone, to the bit.

    The model must have been compiled with `row_lengths`.
    """

    def __init__(self, model: CompiledModel) -> None:
        """UsageError for a model without lengths of its rows."""
        if not has_row_lengths(model.manifest):
            raise UsageError(f"batch: {model.name}: must be compiled with --row-lengths, got a library without it")
        self._names, self._output = {t.name for t in model.inputs}, logits_of(model.manifest)
        self._request = model.create_infer_request()
        self._lengths: list[int] = []
        self._adapter: dict[str, Array] = {}  # of all rows
        self._kept = 0  # tokens of the longest row, also of one that was removed since the last step

    @property
    def lengths(self) -> tuple[int, ...]:
        """Tokens of each row."""
        return tuple(self._lengths)

    def add(self, sequence: Generator) -> None:
        """Append a copy of a sequence. It must have one token or more, and the same adapter as the other rows."""
        if not sequence.tokens:
            raise UsageError("batch: a sequence must have one token or more, got none")
        same = all(n in self._adapter and np.array_equal(a, self._adapter[n]) for n, a in sequence.adapter.items())
        if self._lengths and not same:
            raise UsageError("batch: all rows must have the same adapter, got another one")
        self._request.take_row(sequence.request)
        self._adapter = sequence.adapter
        self._lengths.append(len(sequence.tokens))
        self._kept = max(self._kept, self._lengths[-1])

    def remove(self, row: int) -> None:
        """Remove a row; the last one takes its place. UsageError if there is no such row."""
        if not 0 <= row < len(self._lengths):
            raise UsageError(f"batch: rows must be 0 to {len(self._lengths) - 1}, got {row}")
        self._request.drop_row(row)
        last = self._lengths.pop()
        if row < len(self._lengths):
            self._lengths[row] = last

    def step(self, ids: Sequence[int]) -> Array:
        """Append a token to each row and return the logits [rows, vocabulary] after them."""
        lengths = np.array(self._lengths, np.int64)[:, None]
        if len(ids) != len(lengths) or not ids:
            raise UsageError(f"batch: a token for each of {len(lengths)} rows, one or more, got {len(ids)}")
        past = int(lengths.max())
        if past < self._kept:  # the longest row was removed
            for variable in self._request.query_state():
                variable.truncate(past)
        values = {
            IDS: np.array(ids, np.int64)[:, None],
            MASK: (np.arange(past + 1) <= lengths).astype(np.int64),
            PLACES: lengths,
            ROWS: np.arange(len(lengths), dtype=np.int32),
        }
        inputs = {name: a for name, a in values.items() if name in self._names}
        logits = self._request.infer(inputs | self._adapter)[self._output]
        self._lengths, self._kept = [n + 1 for n in self._lengths], past + 1
        return logits[:, -1]
