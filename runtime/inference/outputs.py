"""Results of an inference by index or name, and times of its kernels."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, Sequence
from typing import NamedTuple

from aot.runtime.arrays.tensors import Array
from aot.runtime.errors import UsageError
from aot.runtime.loading.manifest import TensorInfo


class Outputs(Mapping[str, Array]):
    """Results by index, by any name of an output, or by the output's `TensorInfo`; in the order of the model."""

    __slots__ = ("_arrays", "_infos")

    def __init__(self, infos: tuple[TensorInfo, ...], arrays: tuple[Array, ...]) -> None:
        self._infos = infos
        self._arrays = arrays

    def __getitem__(self, key: str | int | TensorInfo) -> Array:
        if isinstance(key, int) and key < 0:  # from the end
            key += len(self)
        return self._arrays[find("output", self._infos, key)]

    def __iter__(self) -> Iterator[str]:
        return (info.name for info in self._infos)

    def __len__(self) -> int:
        return len(self._arrays)

    def __contains__(self, key: object) -> bool:
        return any(key == info.name or key in info.names for info in self._infos)

    def items(self) -> ItemsView[str, Array]:
        return self.to_dict().items()

    def to_tuple(self) -> tuple[Array, ...]:
        """Return the results in order."""
        return self._arrays

    def to_dict(self) -> dict[str, Array]:
        """Return the results by the names of the outputs."""
        return dict(zip(self, self._arrays, strict=True))

    def __repr__(self) -> str:
        return f"Outputs({', '.join(f'{info.name}: {info}' for info in self._infos)})"


class CallTime(NamedTuple):
    """Layers that a kernel computes, and its time in seconds; `begin`: on the clock of `time.monotonic`."""

    kernel: str
    layers: tuple[str, ...]
    seconds: float
    begin: float = 0.0


def find(kind: str, infos: Sequence[TensorInfo], key: int | str | TensorInfo) -> int:
    """Return the index of the tensor with this index, name or description; UsageError lists the tensors there are."""
    if isinstance(key, int):
        if 0 <= key < len(infos):
            return key
        raise UsageError(f"{kind}: the index must be below {len(infos)}, got {key}")
    name = key.name if isinstance(key, TensorInfo) else key
    for i, info in enumerate(infos):
        if name == info.name or name in info.names:
            return i
    raise UsageError(f"{kind}: must be one of {', '.join(info.name for info in infos) or 'none'}, got '{name}'")
