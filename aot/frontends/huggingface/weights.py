"""Tensors of a folder as constants of the graph: in the type of the file, as the decoder wants them."""

from __future__ import annotations

import numpy as np

from aot.frontends.huggingface.config import Network
from aot.frontends.huggingface.container import Stored
from aot.frontends.huggingface.names import HEAD, NORM, POSITIONS, TOKENS
from aot.frontends.huggingface.quantized import SmallMatrices, SmallMatrix, decompressed
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.origin import Origin
from aot.ir.types import Array
from aot.runtime.abi import DType
from aot.runtime.errors import CorruptError, UnsupportedError

LM_HEAD = "lm_head"
RATES = "rope_freqs.weight"  # which rates of rotations are divided by: made of config.json


class FolderWeights:
    """The tensors of a folder (`aot.frontends.language.tensors`)."""

    def __init__(self, tensors: dict[str, Stored], network: Network, build: Builder, file: str) -> None:
        self.tensors, self.network, self.build, self.file = tensors, network, build, file
        self.names, self.read = network.architecture.names, set[str]()
        # folders that hold the body of a network alone leave out the name of the body
        prefix, heads = self.names.whole[TOKENS].partition(".")[0] + ".", (LM_HEAD, self.names.whole[HEAD])
        if not any(name.startswith(prefix) for name in tensors):
            self.tensors = {name if name.startswith(heads) else prefix + name: t for name, t in tensors.items()}
        scheme = network.scheme
        self.small = None if scheme is None else SmallMatrices(self.tensors, scheme, file)
        self.head = next((name for name in heads if f"{name}.weight" in tensors), LM_HEAD)

    def has(self, name: str) -> bool:
        if name == RATES:
            return self.network.rates is not None
        place = self._place(name)[0]
        found = place in self.tensors or (self.small is not None and self.small.has(place))
        return found and not (name.startswith(f"{HEAD}.") and self.network.tied)

    @property
    def unread(self) -> list[str]:
        ends = (*self.names.unread, *((f"{self.head}.weight",) if self.network.tied else ()))
        read = self.read if self.small is None else self.read | self.small.read
        return [name for name in self.tensors if name not in read and not name.endswith(ends)]

    def floats(self, name: str, *shape: int) -> Array:
        if name == RATES and self.network.rates is not None:
            return self.network.rates
        return self._array(name, shape).astype(np.float32)

    def vector(self, name: str, size: int) -> OutPort:
        found = self.floats(name, size)
        return self._at(name).const(found + np.float32(self.network.architecture.from_one), DType.F32, name)

    def bias(self, name: str, size: int, turned: int = 0, heads: int = 1) -> OutPort:
        del turned, heads  # rotations turn halves
        return self._at(name).const(self.floats(name, size), DType.F32, name)

    def matrix(self, name: str, rows: int, columns: int, turned: int = 0, heads: int = 1) -> OutPort:
        del turned, heads
        build, small = self._at(name), self._small(name, rows, columns)
        if small is not None:
            return decompressed(build, small, name)
        array = self._array(name, (rows, columns))
        dtype = self.tensors[self._place(name)[0]].dtype
        made = build.const(array, dtype, name)
        return made if dtype is DType.F32 else build.Convert(made, destination_type=DType.F32)

    def experts(self, name: str, count: int, rows: int, columns: int) -> OutPort:
        _, layer, part, kind = name.split(".")
        form = f"{self.names.layers}.{layer}.{self.names.experts[part]}.{kind}"
        places = [form.format(n) for n in range(count)]
        build = Builder(self.build.graph, Origin((form.format("*").rpartition(".")[0],), self.file))
        if self.small is not None and self.small.has(places[0]):
            return decompressed(build, self.small.find_all(places, rows, columns), name)
        arrays = [self._stored(place, (rows, columns)) for place in places]
        made = build.const(np.stack(arrays), self.tensors[places[0]].dtype, name)
        return build.Convert(made, destination_type=DType.F32)

    def _place(self, name: str) -> tuple[str, int | None]:
        """Return the folder's name of a tensor, and which half of it is meant."""
        base, kind = name.rsplit(".", 1)
        if base in (TOKENS, POSITIONS, NORM, HEAD, *self.names.whole):
            return f"{self.head if base == HEAD else self.names.whole.get(base, base)}.{kind}", None
        stack, layer, part = base.split(".", 2)
        layers, parts = self.names.stacks.get(stack, (self.names.layers, self.names.parts))
        half = self.names.halves.get(part)
        rest = parts.get(part, part) if half is None else half[0]
        return f"{layers}.{layer}.{rest}.{kind}", None if half is None else half[1]

    def _small(self, name: str, rows: int, columns: int) -> SmallMatrix | None:
        """Return a matrix of small weights, None for floats."""
        place, half = self._place(name)
        if self.small is None or not self.small.has(place):
            return None
        if self.names.interleaved or self.names.transposed:
            raise UnsupportedError(f"{self.file}: small weights of this type of networks can not be read, got {place}")
        if half is None:
            return self.small.find(place, rows, columns)
        return self.small.find(place, 2 * rows, columns).rows(half * rows, (half + 1) * rows)

    def _array(self, name: str, shape: tuple[int, ...]) -> Array:
        """Return a tensor in its own type, with its rows as the decoder wants them."""
        place, half = self._place(name)
        flip = self.names.transposed and len(shape) == 2 and not name.startswith((TOKENS, POSITIONS, HEAD))
        wanted = shape if half is None else (2 * shape[0], *shape[1:])
        found = self._stored(place, wanted, flip=flip)
        if half is not None:
            found = found[half * shape[0] : (half + 1) * shape[0]]
        if self.names.interleaved and ".attn_qkv." in name:
            c = self.network.config
            found = found.reshape(c.heads, 3, c.key, -1).swapaxes(0, 1).reshape(shape)
        return np.ascontiguousarray(found)

    def _stored(self, place: str, shape: tuple[int, ...], *, flip: bool = False) -> Array:
        """Return a tensor of the folder; `flip`: it lies there transposed."""
        stored = self.tensors.get(place)
        if stored is None:
            raise CorruptError(f"{self.file}: the network has a tensor {place!r}, got {len(self.tensors)} others")
        found = stored.array  # before the shape is compared: one of packed types has another
        if stored.shape != (shape[::-1] if flip else shape):
            raise CorruptError(f"{self.file}: tensor {place!r} is {list(shape)}, got {list(stored.shape)}")
        self.read.add(place)
        return found.T if flip else found

    def _at(self, name: str) -> Builder:
        return Builder(self.build.graph, Origin((self._place(name)[0].rpartition(".")[0],), self.file))
