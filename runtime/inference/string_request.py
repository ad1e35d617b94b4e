"""Inferences of models with strings: users handle tensors of strings, compiled code three tensors of numbers each."""

from __future__ import annotations

from aot.runtime.abi import DType
from aot.runtime.arrays.strings import PARTS, as_texts, encode, numbered, texts
from aot.runtime.arrays.tensors import Array
from aot.runtime.errors import UsageError
from aot.runtime.inference.executor import Executor
from aot.runtime.inference.outputs import Outputs, find
from aot.runtime.inference.request import InferRequest
from aot.runtime.loading.library import Library, Pool


class StringRequest(InferRequest):
    """InferRequest of a model with strings; indices and names are those of the user's tensors."""

    def __init__(
        self,
        library: Library,
        pool: Pool,
        executor: Executor | None = None,
        callbacks: Executor | None = None,
        id: int = 0,
    ) -> None:
        super().__init__(library, pool, executor, callbacks, id)
        inputs, outputs = list(numbered(self._inputs.infos)), list(numbered(self._outputs.infos))
        self._input_at, self._seen_inputs = tuple(at for at, _ in inputs), tuple(info for _, info in inputs)
        self._output_at, self._seen_outputs = tuple(at for at, _ in outputs), tuple(info for _, info in outputs)

    def get_input_tensor(self, index: int = 0) -> Array:
        """Return the tensor that was set for input `index`; strings in a new array."""
        find("input", self._seen_inputs, index)
        return self._input(index)

    def get_output_tensor(self, index: int = 0) -> Array:
        """Return the tensor of an output, as `InferRequest.get_output_tensor` does."""
        find("output", self._seen_outputs, index)
        array = self._outputs.given[self._output_at[index]]
        return array if array is not None else self.results[index]

    def set_output_tensor(self, index: int, value: object) -> None:
        """Bind an output, as `InferRequest.set_output_tensor` does, except strings, which are always new arrays."""
        find("output", self._seen_outputs, index)
        info = self._seen_outputs[index]
        if info.dtype is DType.STRING:
            raise UsageError(f"output '{info.name}': must not be set, as strings are always new arrays, got an array")
        super().set_output_tensor(self._output_at[index], value)

    @property
    def results(self) -> Outputs:
        """Results of the last inference."""
        return self._joined(super().results)

    def _input(self, index: int) -> Array:
        at = self._input_at[index]
        if self._seen_inputs[index].dtype is not DType.STRING:
            return super()._input(at)
        return texts(*(super(StringRequest, self)._input(at + k) for k in range(len(PARTS))))

    def _set_input(self, index: int, value: object) -> None:
        info, at = self._seen_inputs[index], self._input_at[index]
        if info.dtype is not DType.STRING:
            self._inputs.bind(at, value)
            return
        for k, part in enumerate(encode(as_texts("input", info, value))):
            self._inputs.bind(at + k, part)

    def _run(self) -> Outputs:
        return self._joined(super()._run())

    def _joined(self, outputs: Outputs) -> Outputs:
        arrays = outputs.to_tuple()
        pairs = zip(self._output_at, self._seen_outputs, strict=True)
        tensors = (texts(*arrays[at : at + len(PARTS)]) if i.dtype is DType.STRING else arrays[at] for at, i in pairs)
        return Outputs(self._seen_outputs, tuple(tensors))
