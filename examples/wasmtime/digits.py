"""Reads a handwritten digit in wasmtime: WebAssembly without JavaScript, and without aot.

    aot compile examples/digits/model.xml -o digits.wasm --target wasm
    python examples/wasmtime/digits.py digits.wasm examples/digits/seven.npy

It needs numpy and wasmtime. Structures are those of C, with pointers of four bytes: `struct aot_model` of model.h is
`<qqI4xqqI4xqI4xqq9I4xq4I`, and `struct aot_request` is `<6IqI4x`.
"""

from __future__ import annotations

import struct
import sys
from typing import Any

import numpy as np
import wasmtime

ABI = 4
FIELDS = (
    "abi bytes manifest manifest_bytes input_count inputs output_count outputs symbol_count call_count state_size "
    "infer shapes arena_size pool_create pool_destroy pool_resize error_text weights weights_bytes output_sizes "
    "output_dims generate forget"
).split()
TABLE, REQUEST = struct.Struct("<qqI4xqqI4xqI4xqq9I4xq4I"), struct.Struct("<6IqI4x")


class Network:
    """A module without threads and external weights, whose sizes do not vary."""

    def __init__(self, path: str) -> None:
        self.store = wasmtime.Store()
        module = wasmtime.Module.from_file(self.store.engine, path)
        self.exports: Any = wasmtime.Instance(self.store, module, []).exports(self.store)
        self.memory = self.exports["memory"]
        (query,) = (name for name in self.exports if name.startswith("aot_query_"))
        at = self.exports[query](self.store, ABI) & 0xFFFFFFFF
        if not at:
            raise SystemExit(f"{path}: must have version {ABI} of the interface")
        self.table = dict(zip(FIELDS, TABLE.unpack(self.read(at, TABLE.size)), strict=True))

    def call(self, name: str, *values: int) -> int:
        """Return what a function of the table returns: its pointer is a place in the module's table."""
        return self.exports["table"].get(self.store, self.table[name])(self.store, *values)

    def read(self, at: int, size: int) -> bytes:
        return bytes(self.memory.read(self.store, at, at + size))

    def put(self, data: bytes) -> int:
        """Return the address of a copy of `data`, at a multiple of 64."""
        at = self.exports["aligned_alloc"](self.store, 64, len(data)) & 0xFFFFFFFF
        self.memory.write(self.store, data, at)
        return at

    def run(self, image: np.ndarray) -> np.ndarray:
        """Return the ten probabilities of a picture."""
        arena, state = self.call("arena_size", 0, 1), self.call("state_size", 0)
        scores = self.put(bytes(4 * 10))
        inputs, outputs = self.put(struct.pack("<I", self.put(image.tobytes()))), self.put(struct.pack("<I", scores))
        request = REQUEST.pack(inputs, outputs, 0, self.put(bytes(arena)), self.put(bytes(state)), 0, 1, 0)
        if code := self.call("infer", self.put(request)):
            raise SystemExit(f"error {code}")
        return np.frombuffer(self.read(scores, 40), np.float32)


if __name__ == "__main__":
    module, picture = sys.argv[1:]
    print(Network(module).run(np.load(picture)).argmax())
