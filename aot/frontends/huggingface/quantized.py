"""Matrices of folders with small weights, as AWQ, GPTQ and compressed-tensors write them.

integers [rows, groups, size] of 4 or 8 bits: (integer - zero) scale, with zeros and scales [rows, groups, 1]

GPTQ      qweight [columns / 8, rows], qzeros [groups, rows / 8], scales [groups, rows], g_idx [columns]
AWQ       qweight [columns, rows / 8], qzeros [groups, rows / 8], scales [groups, rows]; 8 rows in an own order
tensors   weight_packed [rows, columns / 8] or weight [rows, columns], weight_scale [rows, groups], weight_zero_point
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.frontends.huggingface.container import Stored
from aot.frontends.language.config import Values
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.types import Array, numpy_dtype
from aot.runtime.abi import DType
from aot.runtime.errors import CorruptError, UnsupportedError

CONFIG = "quantization_config"
GPTQ, AWQ, TENSORS, MXFP4 = "gptq", "awq", "compressed-tensors", "mxfp4"
WEIGHT = ".weight"  # what the names of matrices end with, packed or not
WORD = 32  # bits of an integer that small ones are packed in, the first one in the least bits
AWQ_ORDER = (0, 4, 1, 5, 2, 6, 3, 7)  # where AWQ has each of 8 rows
MXFP4_SIZE, EXPONENT_BIAS = 32, 127  # of blocks of MXFP4: elements, and what exponents are stored above
FORMATS = ("pack-quantized", "int-quantized", "naive-quantized")  # formats of compressed-tensors


@dataclass(frozen=True, slots=True)
class Scheme:
    """A way to pack matrices. `after`: what is added to zero points, 1 in GPTQ's first format."""

    method: str
    bits: int
    after: int = 0


@dataclass(frozen=True, slots=True)
class SmallMatrix:
    """A matrix as integers [rows, groups, size], with scales and zero points [rows, groups, 1].

    Several of them have a dimension before these.
    """

    integers: Array
    scales: Array
    zeros: Array
    bits: int

    def rows(self, begin: int, end: int) -> SmallMatrix:
        """Return some of the rows."""
        return SmallMatrix(self.integers[begin:end], self.scales[begin:end], self.zeros[begin:end], self.bits)


def scheme_of(v: Values) -> Scheme | None:
    """Return how matrices are packed, None for floats; UnsupportedError for another way."""
    q = v.part(CONFIG)
    method = q.find("quant_method")
    if not q.metadata or method == MXFP4:
        return None  # MXFP4 is of experts, which their tensors tell
    if method == GPTQ:
        after = 0 if q.find("checkpoint_format") == "gptq_v2" else 1
        return _checked(q, Scheme(GPTQ, q.integer("bits"), after))
    if method == AWQ and str(q.find("version", "gemm")).lower() == "gemm":
        return _checked(q, Scheme(AWQ, q.integer("bits", 4)))
    groups = q.part("config_groups")
    if method == TENSORS and len(groups.metadata) == 1 and q.find("format") in FORMATS:
        (group,) = groups.metadata
        weights = groups.part(group).part("weights")
        if weights.find("type") == "int":
            return _checked(q, Scheme(TENSORS, weights.integer("num_bits")))
    rule = f"{MXFP4}, {GPTQ}, {AWQ} (gemm) and {TENSORS} ({', '.join(FORMATS)}) with integers can be read"
    raise UnsupportedError(
        f"{v.file}: {CONFIG}: {rule}, got {method} {str(q.find('format', q.find('version', '')))[:40]}"
    )


def _checked(q: Values, scheme: Scheme) -> Scheme:
    if scheme.bits not in (4, 8) or (scheme.method == AWQ and scheme.bits != 4):
        raise UnsupportedError(f"{q.file}: {CONFIG}: weights of 4 or 8 bits (AWQ: 4) can be read, got {scheme.bits}")
    return scheme


class SmallMatrices:
    """The matrices of a folder that its scheme packs."""

    def __init__(self, tensors: Mapping[str, Stored], scheme: Scheme, file: str) -> None:
        self._tensors, self._scheme, self._file = tensors, scheme, file
        self.read = set[str]()

    def has(self, name: str) -> bool:
        """True if the matrix of a tensor's name, which ends with .weight, is packed."""
        end = "weight_scale" if self._scheme.method == TENSORS else "qweight"
        return name.endswith(WEIGHT) and f"{name.removesuffix(WEIGHT)}.{end}" in self._tensors

    def find(self, name: str, rows: int, columns: int) -> SmallMatrix:
        """Return a packed matrix; CorruptError for tensors that do not fit each other."""
        read = {GPTQ: self._of_gptq, AWQ: self._of_awq, TENSORS: self._of_tensors}[self._scheme.method]
        return read(name.removesuffix(WEIGHT), rows, columns)

    def find_all(self, names: list[str], rows: int, columns: int) -> SmallMatrix:
        """Return packed matrices as one, with a dimension before its rows."""
        matrices = [self.find(name, rows, columns) for name in names]
        sizes = {m.scales.shape[1] for m in matrices}
        if len(sizes) > 1:
            raise CorruptError(f"{self._file}: {names[0]}: all experts must have as many groups, got {sorted(sizes)}")
        integers, scales, zeros = zip(*((m.integers, m.scales, m.zeros) for m in matrices), strict=True)
        return SmallMatrix(np.stack(integers), np.stack(scales), np.stack(zeros), self._scheme.bits)

    def _of_gptq(self, base: str, rows: int, columns: int) -> SmallMatrix:
        bits, per = self._scheme.bits, WORD // self._scheme.bits
        integers = _unpacked(self._take(f"{base}.qweight", "I32", columns // per, rows), bits, axis=0)
        scales, groups = self._scales(base, rows, columns)
        zeros = _unpacked(self._take(f"{base}.qzeros", "I32", groups, rows // per), bits, axis=1)
        size = columns // groups
        if f"{base}.g_idx" in self._tensors:
            positions = self._take(f"{base}.g_idx", "I32", columns)
            if not np.array_equal(positions, np.arange(columns) // size):
                rule = "columns whose groups lie behind each other (desc_act false) can be read"
                raise UnsupportedError(f"{self._file}: {base}: {rule}, got others")
        return self._small_matrix(integers.T, scales.T, zeros.T.astype(np.int16) + self._scheme.after, groups)

    def _of_awq(self, base: str, rows: int, columns: int) -> SmallMatrix:
        def ordered(packed: Array) -> Array:
            unpacked = _unpacked(packed, 4, axis=1)
            return unpacked.reshape(len(unpacked), -1, 8)[:, :, AWQ_ORDER].reshape(unpacked.shape)

        integers = ordered(self._take(f"{base}.qweight", "I32", columns, rows // 8))
        scales, groups = self._scales(base, rows, columns)
        zeros = ordered(self._take(f"{base}.qzeros", "I32", groups, rows // 8))
        return self._small_matrix(integers.T, scales.T, zeros.T, groups)

    def _of_tensors(self, base: str, rows: int, columns: int) -> SmallMatrix:
        bits, per, half = self._scheme.bits, WORD // self._scheme.bits, 1 << (self._scheme.bits - 1)
        if f"{base}.weight_packed" in self._tensors:
            integers = _unpacked(self._take(f"{base}.weight_packed", "I32", rows, columns // per), bits, axis=1)
            if self._take(f"{base}.weight_shape", "I64", 2).tolist() != [rows, columns]:
                raise CorruptError(f"{self._file}: {base}.weight_shape must be {[rows, columns]}, got another shape")
        else:
            integers = (self._take(f"{base}.weight", "I8", rows, columns).astype(np.int16) + half).astype(np.uint8)
        scales, groups = self._scales(base, rows, columns, "weight_scale")
        zeros = np.full((rows, groups), half, np.uint8)
        if f"{base}.weight_zero_point" in self._tensors:
            zeros = self._zeros(f"{base}.weight_zero_point", rows, groups, half)
        if f"{base}.weight_g_idx" in self._tensors:
            positions = self._take(f"{base}.weight_g_idx", "I32", columns)
            if (positions >= 0).all() and not np.array_equal(positions, np.arange(columns) // (columns // groups)):
                raise UnsupportedError(
                    f"{self._file}: {base}: groups that lie behind each other can be read, got others"
                )
        return self._small_matrix(integers, scales, zeros, groups)

    def _zeros(self, name: str, rows: int, groups: int, half: int) -> Array:
        bits, per = self._scheme.bits, WORD // self._scheme.bits
        if self._tensors[name].kind == "I32":
            return _unpacked(self._take(name, "I32", rows // per, groups), bits, axis=0)
        return (self._take(name, "I8", rows, groups).astype(np.int16) + half).astype(np.uint8)

    def _scales(self, base: str, rows: int, columns: int, end: str = "scales") -> tuple[Array, int]:
        """Return the scales as f32 and the number of groups of a row."""
        name = f"{base}.{end}"
        stored = self._tensor(name)
        groups = stored.shape[-1 if self._scheme.method == TENSORS else 0] if len(stored.shape) == 2 else 0
        shape = (rows, groups) if self._scheme.method == TENSORS else (groups, rows)
        if stored.shape != shape or groups == 0 or columns % groups:
            raise CorruptError(
                f"{self._file}: tensor {name!r} must have a number for each group, got {list(stored.shape)}"
            )
        self.read.add(name)
        return stored.array.astype(np.float32), groups

    def _small_matrix(self, whole: Array, scales: Array, zeros: Array, groups: int) -> SmallMatrix:
        rows, columns = whole.shape
        integers = np.ascontiguousarray(whole).reshape(rows, groups, columns // groups)
        parts = [np.ascontiguousarray(part).reshape(rows, groups, 1) for part in (scales, zeros)]
        return SmallMatrix(integers, parts[0], parts[1], self._scheme.bits)

    def _take(self, name: str, kind: str, *shape: int) -> Array:
        """Return integers; CorruptError for a tensor of another type or shape."""
        stored = self._tensor(name)
        if stored.kind != kind or stored.shape != shape:
            got = f"{stored.kind} {list(stored.shape)}"
            raise CorruptError(f"{self._file}: tensor {name!r} must be {kind} {list(shape)}, got {got}")
        self.read.add(name)
        return np.frombuffer(stored.raw.tobytes(), np.dtype(f"<{kind[0].lower()}{int(kind[1:]) // 8}")).reshape(shape)

    def _tensor(self, name: str) -> Stored:
        if name not in self._tensors:
            raise CorruptError(f"{self._file}: the network must have a tensor {name!r}, got none")
        return self._tensors[name]


def decompressed(build: Builder, matrix: SmallMatrix, name: str) -> OutPort:
    """Return a matrix [rows, columns] as f32, as IR decompresses it: Convert, Subtract, Multiply, Reshape."""
    integers = build.const(matrix.integers, DType.U4 if matrix.bits == 4 else DType.U8, name)
    port = build.Convert(integers, destination_type=DType.F32)
    zeros = matrix.zeros
    if (zeros == zeros.flat[0]).all():
        zeros = zeros.reshape(-1)[:1].reshape((1,) * zeros.ndim)
    most = int(zeros.max())
    kind = DType.U4 if matrix.bits == 4 and most < 1 << 4 else DType.U8 if most < 1 << 8 else DType.I16
    zeros = zeros.astype(np.int16 if kind is DType.I16 else np.uint8)
    port = build.Subtract(port, build.Convert(build.const(zeros, kind), destination_type=DType.F32))
    port = build.Multiply(port, build.const(matrix.scales, DType.F32))
    *rows, groups, size = matrix.integers.shape
    return build.Reshape(port, build.const([*rows, groups * size], DType.I64))


def decompressed_mxfp4(build: Builder, blocks: Array, exponents: Array, name: str) -> OutPort:
    """Return matrices [.., rows, columns] as f32: bytes of `blocks` have two floats, with an exponent for 16 bytes."""
    *rows, groups, half = blocks.shape
    codes = np.stack([blocks & 15, blocks >> 4], -1).reshape(*rows, groups, 2 * half)
    stored_codes = build.const(codes.view(numpy_dtype(DType.F4E2M1)), DType.F4E2M1, name)
    scales = np.ldexp(np.float32(1), exponents.astype(np.int32) - EXPONENT_BIAS)[..., None]
    port = build.Multiply(build.Convert(stored_codes, destination_type=DType.F32), build.const(scales, DType.F32))
    return build.Reshape(port, build.const([*rows, groups * 2 * half], DType.I64))


def _unpacked(packed: Array, bits: int, axis: int) -> Array:
    """Return the small integers along an axis, as u8."""
    shifts = np.arange(0, WORD, bits, dtype=np.uint32)
    wide = np.moveaxis(packed.view(np.uint32), axis, -1)[..., None] >> shifts & np.uint32((1 << bits) - 1)
    return np.moveaxis(wide.reshape(*wide.shape[:-2], -1).astype(np.uint8), -1, axis)
