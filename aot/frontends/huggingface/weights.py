"""Tensors of a folder as constants of the graph: in the type of the file, as the decoder wants them."""

from __future__ import annotations

import numpy as np

from aot.frontends.huggingface.config import Network
from aot.frontends.huggingface.container import Stored
from aot.frontends.huggingface.names import HEAD, NORM, POSITIONS, TOKENS
from aot.frontends.huggingface.quantized import (
    MXFP4_SIZE,
    SmallMatrices,
    SmallMatrix,
    decompressed,
    decompressed_mxfp4,
)
from aot.frontends.language.tensors import as_f32
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.origin import Origin
from aot.ir.types import Array
from aot.runtime.abi import DType
from aot.runtime.errors import CorruptError, UnsupportedError

LM_HEAD = "lm_head"


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
        tensor = self._place(name)[0]
        exists = tensor in self.tensors or (self.small is not None and self.small.has(tensor))
        return exists and not (name.startswith(f"{HEAD}.") and self.network.tied)

    @property
    def unread(self) -> list[str]:
        ends = (*self.names.unread, *((f"{self.head}.weight",) if self.network.tied else ()))
        read = self.read if self.small is None else self.read | self.small.read
        return [name for name in self.tensors if name not in read and not name.endswith(ends)]

    def floats(self, name: str, *shape: int) -> Array:
        return self._array(name, shape).astype(np.float32)

    def vector(self, name: str, size: int) -> OutPort:
        floats = self.floats(name, size)
        return self._at(name).const(floats + np.float32(self.network.architecture.from_one), DType.F32, name)

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
        return as_f32(build, array, dtype, name)

    def experts(self, name: str, count: int, rows: int, columns: int) -> OutPort:
        _, layer, part, kind = name.split(".")
        if part in self.names.alternating:
            return self._all_experts(name, count, rows, columns)
        form = f"{self.names.layers}.{layer}.{self.names.experts[part]}.{kind}"
        prefixes = [form.format(n) for n in range(count)]
        build = Builder(self.build.graph, Origin((form.format("*").rpartition(".")[0],), self.file))
        if self.small is not None and self.small.has(prefixes[0]):
            return decompressed(build, self.small.find_all(prefixes, rows, columns), name)
        arrays = [self._stored(place, (rows, columns)) for place in prefixes]
        return as_f32(build, np.stack(arrays), self.tensors[prefixes[0]].dtype, name)

    def _all_experts(self, name: str, count: int, rows: int, columns: int) -> OutPort:
        """Return the matrices of all experts, which are one tensor: of MXFP4, or transposed and of floats."""
        prefix, (first, step) = self._place(name)[0], self._alternating(name)
        if f"{prefix}_blocks" in self.tensors:
            groups = columns // MXFP4_SIZE
            blocks = self._bytes(f"{prefix}_blocks", count, rows * step, groups, MXFP4_SIZE // 2)[:, first::step]
            scales = self._bytes(f"{prefix}_scales", count, rows * step, groups)[:, first::step]
            return decompressed_mxfp4(self._at(name), blocks, scales, name)
        rows_of_experts = self._stored(prefix, (count, columns, rows * step))[..., first::step].swapaxes(1, 2)
        return as_f32(self._at(name), np.ascontiguousarray(rows_of_experts), self.tensors[prefix].dtype, name)

    def _bytes(self, name: str, *shape: int) -> Array:
        stored = self.tensors.get(name)
        if stored is None or stored.kind != "U8" or stored.shape != shape:
            got = "none" if stored is None else f"{stored.kind} {list(stored.shape)}"
            raise CorruptError(f"{self.file}: tensor {name!r} must be U8 {list(shape)}, got {got}")
        self.read.add(name)
        return stored.raw.reshape(shape)

    def _alternating(self, name: str) -> tuple[int, int]:
        """Return the first of the rows that belong to a tensor, and their distance."""
        return self.names.alternating.get(name.split(".")[2], (0, 1)) if name.startswith("blk.") else (0, 1)

    def _place(self, name: str) -> tuple[str, int | None]:
        """Return the folder's name of a tensor, and which half of it is meant."""
        base, kind = name.rsplit(".", 1)
        if base in (TOKENS, POSITIONS, NORM, HEAD, *self.names.whole):
            return f"{self.head if base == HEAD else self.names.whole.get(base, base)}.{kind}", None
        stack, layer, part = base.split(".", 2)
        layers, parts = self.names.stacks.get(stack, (self.names.layers, self.names.parts))
        half = self.names.halves.get(part)
        if f"{part}.{kind}" in parts:
            return f"{layers}.{layer}.{parts[f'{part}.{kind}']}", None
        rest = parts.get(part, part) if half is None else half[0]
        return f"{layers}.{layer}.{rest}.{kind}", None if half is None else half[1]

    def _small(self, name: str, rows: int, columns: int) -> SmallMatrix | None:
        """Return a matrix of small weights, None for floats."""
        prefix, half = self._place(name)
        if self.small is None or not self.small.has(prefix):
            return None
        if self.names.interleaved or self.names.transposed:
            raise UnsupportedError(f"{self.file}: small weights of this type of networks can not be read, got {prefix}")
        if half is None:
            return self.small.find(prefix, rows, columns)
        return self.small.find(prefix, 2 * rows, columns).rows(half * rows, (half + 1) * rows)

    def _array(self, name: str, shape: tuple[int, ...]) -> Array:
        """Return a tensor in its own type, with its rows as the decoder wants them."""
        tensor, half = self._place(name)
        flip = self.names.transposed and len(shape) == 2 and not name.startswith((TOKENS, POSITIONS, HEAD))
        first, step = self._alternating(name)
        stored_shape = (*shape[:-1], step * shape[-1]) if half is None else (2 * shape[0], *shape[1:])
        found = self._stored(tensor, stored_shape, flip=flip)[..., first::step]
        if half is not None:
            found = found[half * shape[0] : (half + 1) * shape[0]]
        if self.names.interleaved and ".attn_qkv." in name:
            c = self.network.config
            parts = found.reshape(c.key_heads, c.heads // c.key_heads + 2, c.key, -1)
            split = parts[:, :-2], parts[:, -2], parts[:, -1]
            found = np.concatenate([part.reshape(-1, *shape[1:]) for part in split])
        return np.ascontiguousarray(found)

    def _stored(self, name: str, shape: tuple[int, ...], *, flip: bool = False) -> Array:
        """Return a tensor of the folder; `flip`: it lies there transposed."""
        stored = self.tensors.get(name)
        if stored is None:
            raise CorruptError(f"{self.file}: the network must have a tensor {name!r}, got {len(self.tensors)} others")
        found = stored.array  # before the shape is compared: one of packed types has another
        if stored.shape != (shape[::-1] if flip else shape):
            raise CorruptError(f"{self.file}: tensor {name!r} must be {list(shape)}, got {list(stored.shape)}")
        self.read.add(name)
        return found.T if flip else found

    def _at(self, name: str) -> Builder:
        return Builder(self.build.graph, Origin((self._place(name)[0].rpartition(".")[0],), self.file))
