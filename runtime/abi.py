"""The contract between compiler and loader: element types, descriptors, names and the version of the ABI.

manifest (JSON)  <--written by codegen.llvm, read by runtime.loading.library-->  tables of the .so
"""

from __future__ import annotations

import ctypes
import re
from enum import StrEnum
from typing import NamedTuple

ABI_VERSION = 4


class DType(StrEnum):
    """Element types; the value is OpenVINO's `element_type` spelling. Types under 8 bits are storage types."""

    F64 = "f64"
    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    I64 = "i64"
    I32 = "i32"
    I16 = "i16"
    I8 = "i8"
    U64 = "u64"
    U32 = "u32"
    U16 = "u16"
    U8 = "u8"
    BOOL = "boolean"
    U1 = "u1"
    U2 = "u2"
    U3 = "u3"
    U4 = "u4"
    U6 = "u6"
    I4 = "i4"
    I2 = "i2"
    NF4 = "nf4"
    F4E2M1 = "f4e2m1"
    F8E4M3 = "f8e4m3"
    F8E5M2 = "f8e5m2"
    F8E8M0 = "f8e8m0"
    F8E4M3FNUZ = "f8e4m3fnuz"
    F8E5M2FNUZ = "f8e5m2fnuz"
    STRING = "string"

    # Attributes, not properties: the compiler reads them for every instruction.
    bits: int  # of one element in storage; 0 for strings
    stored_bytes: int  # bytes of one element in a model's memory: packed types have one element per byte
    is_float: bool
    is_integer: bool
    is_signed: bool
    compute: DType  # type in which values are computed: f32 for short floats, i8 or u8 for packed integers

    @property
    def bytes(self) -> int:
        """Bytes of one element in memory; packed types have no byte size of their own and raise ValueError."""
        if self.bits % 8 or not self.bits:
            raise ValueError(f"{self.value}: elements are not whole bytes")
        return self.bits // 8


def _bits(t: DType) -> int:
    """Return the bits of an element, the first number in its name."""
    match = re.search(r"\d+", t.value)
    return int(match[0]) if match is not None else 8 * (t is DType.BOOL)


def _compute(t: DType) -> DType:
    if t.is_float and t.bits < 32:
        return DType.F32
    if t.is_integer and t.bits < 8:
        return DType.I8 if t.is_signed else DType.U8
    return t


for _type in DType:
    _type.bits = _bits(_type)
    _type.stored_bytes = max(_type.bits // 8, 1)
    _type.is_float = _type.value[0] in "fbn" and _type is not DType.BOOL
    _type.is_integer = _type.value[0] in "iu"
    _type.is_signed = _type.is_float or _type.value[0] == "i"
    _type.compute = _compute(_type)


class FloatFormat(NamedTuple):
    """A float that NumPy does not have: (-1)^sign 2^(exponent - bias) 1.mantissa, subnormals as in IEEE 754.

    `nan`: the code of NaN, which has a sign unless `unsigned_zero`. `infinite`: the code of infinity.
    """

    mantissa: int
    bias: int
    sign: int  # the sign's bit
    nan: int | None = None
    infinite: int | None = None
    unsigned_zero: bool = False

    @property
    def finite(self) -> int:
        """Number of codes, from 0 on, that are finite numbers and not negative."""
        return min(code for code in (self.sign, self.nan, self.infinite) if code is not None)


FLOAT_FORMATS = {
    DType.F8E4M3: FloatFormat(3, 7, 0x80, 0x7F),
    DType.F8E5M2: FloatFormat(2, 15, 0x80, 0x7E, 0x7C),
    DType.F8E4M3FNUZ: FloatFormat(3, 8, 0x80, 0x80, unsigned_zero=True),
    DType.F8E5M2FNUZ: FloatFormat(2, 16, 0x80, 0x80, unsigned_zero=True),
    DType.F4E2M1: FloatFormat(1, 1, 0x8),
}


# --- the shared library -----------------------------------------------------------------------------------------------
#
#   aot_query_<tag>(i32 version) -> const struct aot_model *, null for a version it does not know
#
#   m.so   .text           kernels and drivers
#          .aot.manifest   JSON, see MANIFEST_VERSION
#          .aot.weights    constants; blocks start at multiples of 64, the section at a page
#          .aot.seal       SHA-256 of the file without this section and the weights

QUERY_PREFIX = "aot_query_"
WEIGHTS_PREFIX = "aot_weights_"
MANIFEST_PREFIX = "aot_manifest_"
MANIFEST_SECTION = ".aot.manifest"
WEIGHTS_SECTION = ".aot.weights"
RESERVED_SECTION = ".bss.aot_weights"  # where external weights are mapped; linkers put a section of this name last
WEIGHTS_PAGE = 64 << 10  # alignment of external weights: at least the page size of any machine
LEVELS_SECTION = ".aot.levels"  # manifests of all levels, if there are several
SEAL_SECTION = ".aot.seal"
SEAL_PREFIX = "aot_seal_"
SEAL_BYTES = 32

# Raised with every change of the manifest that an older loader would misread. The keys:
#   manifest, abi             versions
#   name, tag, hash           of the model, of its symbols, of its content (hexadecimal SHA-256)
#   machine, triple, features e_machine of ELF; LLVM's names of the features that the CPU must have
#   symbols                   [{"name", "min", "max" or null}], in the order of `Request.symbols`
#   late                      names of data-dependent sizes, which `infer` sets; they follow the symbols
#   capacities                [{"of", "initial"}]: upper bounds of data-dependent sizes; they follow
#   computed                  number of sizes computed from all these; they follow; includes CANCEL_WORDS
#   cancel                    only if a loop has no static bound: index in `Request.symbols` of CANCEL_WORDS
#   rules                     [{"one", "other", "text"}]: expressions over symbols that are checked to be equal
#   inputs, outputs           [{"name", "names", "dtype", "shape", "align"}]; align: of the address, in bytes; default:
#                             offset in the weights, in bytes, of the value of an optional input
#                             a dimension is an int, {"symbol", "min", "max"}, {"expr": text} or, if it is
#                             data-dependent, {"late": text}
#   calls                     [{"kernel", "layers", "work", "traffic"}], in the order of `Request.profile`
#   versions                  [{"sizes", "first", "end"}]: calls that run where symbols have these sizes, the first that
#                             fits; those after them run for all other sizes; only if there are several versions
#   variables                 [{"name", "dtype", "shape", "flag", "data"}]: offsets in the state, in bytes; at
#                             flag is an i64, not 0 once it is set. If a dimension is dynamic (-1), data is null:
#                             the data's offset and the dynamic dimensions follow the flag, as i64. One that grows in
#                             place has "cache" {"axis", "room", "data", "row", "before", "last"}: see CacheInfo
#   weights, scratch          bytes; scratch is per thread, a dimension if sizes are dynamic
#   arena, state              bytes of working memory of a request besides, and of its variables; only if no size varies
#   about                     texts about the model that its file has: licence, author, description; only if it has some
#   embedded, external        weights, in the library or in a file: {"bytes", "layout", "sha256"}, see `loading.weights`
#   levels                    [{"target", "features", "calls"}], lowest first, if there are several; the rest is as of
#                             the lowest one, but tag and hash; the table has the manifest of the one that was chosen
#   options, toolchain        options and versions with which it was compiled
#   key                       only in an entry of the compile cache: the entry's key
MANIFEST_VERSION = 3

ARENA_ALIGN = 64  # bytes: Request.arena, Request.state, tensors that a request allocates
MAX_BYTES = 1 << 47  # largest arena or output
MAX_CAPACITY = 1 << 40
CANCEL_WORDS = 2  # words at the end of Request.symbols, if a loop has no static bound
MAX_THREADS = 512  # threads of a pool at most, the caller's included


class Request(ctypes.Structure):
    """One inference. Every field has eight bytes, so that C, LLVM and ctypes lay it out alike on every machine.

    inputs, outputs  addresses of the tensors, in the order of the manifest; dense, row-major
    symbols          values of the symbols: zero before the first call of `shapes`; `infer` writes data-dependent ones.
                     With the key `cancel` in the manifest two words follow: `infer` returns ERROR_CANCELLED soon after
                     the first is set, by any thread; the second is 0 or the address of a function, i32 (), that loops
                     call every 40 ms, and that cancels by returning another number than 0
    arena            `arena_size(symbols, threads)` bytes at a multiple of 64; contents need not be kept
    state            `state_size(symbols)` bytes at a multiple of 64, kept between inferences, zero before the first
                     one; should more be needed, the first ones stay
    pool             from `pool_create` of any model with this ABI version; null: the caller works alone
    threads          as given to `arena_size`; at most this many work on the request, fewer if the pool is smaller
    profile          null, or two u64 for each call: nanoseconds (CLOCK_MONOTONIC) at its begin and end
    """

    _fields_ = (
        ("inputs", ctypes.c_void_p),
        ("outputs", ctypes.c_void_p),
        ("symbols", ctypes.c_void_p),
        ("arena", ctypes.c_void_p),
        ("state", ctypes.c_void_p),
        ("pool", ctypes.c_void_p),
        ("threads", ctypes.c_int64),
        ("profile", ctypes.c_void_p),
    )


class Generation(ctypes.Structure):
    """A sequence of tokens and how it goes on; see `Table.generate`. Every field has eight bytes.

    ids, count       tokens to append, one or more
    most             tokens to generate at most
    stop, stop_count i64 tokens that end it, which are generated, too
    temperature, top_k, top_p, seed
                     as of `runtime.Sampling`: 0, 0, 1, 0 take the greatest logit
    on_token         null, or i32 (ptr user, i64 token), called for each token at once; another result than 0 ends it
    pool, threads    as of `Request`
    made             set to the number of tokens that were generated
    sequence         null for a new sequence, which is stored here; `forget` gives its memory back
    """

    _fields_ = (
        ("ids", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("most", ctypes.c_int64),
        ("stop", ctypes.c_void_p),
        ("stop_count", ctypes.c_int64),
        ("temperature", ctypes.c_double),
        ("top_k", ctypes.c_int64),
        ("top_p", ctypes.c_double),
        ("seed", ctypes.c_uint64),
        ("on_token", ctypes.c_void_p),
        ("user", ctypes.c_void_p),
        ("pool", ctypes.c_void_p),
        ("threads", ctypes.c_int64),
        ("made", ctypes.c_int64),
        ("sequence", ctypes.c_void_p),
    )


class Table(ctypes.Structure):
    """Table that `aot_query_<tag>` returns; constant, and valid as long as the library is loaded.

    i32  infer(const Request *)                           0 or an error code; may run in many threads at once
    i32  shapes(const i64 *input_dims, i64 *symbols, i64 *output_dims)
                                                          dims of all tensors, one after the other; -1: data-dependent
    i64  state_size(const i64 *symbols)                   bytes
    i64  arena_size(const i64 *symbols, i64 threads)      bytes
    ptr  pool_create(i64 threads)                         null when out of memory; starts no thread
    void pool_destroy(ptr pool)                           no request may be running on it
    void pool_resize(ptr pool, i64 threads)
    ptr  error_text(i32 code)                             constant text
    void output_sizes(const i64 *symbols, i64 *bytes)     of each output, at most
    void output_dims(const i64 *symbols, i64 *dims)       of all outputs, after `infer`
    i32  generate(Generation *)                           0 or an error code; null if the model is no language model
    void forget(Generation *)                             frees a sequence; null as well

    When a data-dependent size exceeds its capacity, `infer` raises it in `symbols` and returns ERROR_CAPACITY: call
    `shapes`, `arena_size`, `state_size` and `output_sizes` again, and then `infer`.

    weights is the address of the weights, or the one to map external weights to: weights_bytes, whole pages.
    """

    _fields_ = (
        ("abi", ctypes.c_int64),
        ("bytes", ctypes.c_int64),
        ("manifest", ctypes.c_void_p),
        ("manifest_bytes", ctypes.c_int64),
        ("input_count", ctypes.c_int64),
        ("inputs", ctypes.c_void_p),
        ("output_count", ctypes.c_int64),
        ("outputs", ctypes.c_void_p),
        ("symbol_count", ctypes.c_int64),
        ("call_count", ctypes.c_int64),
        ("state_size", ctypes.c_void_p),
        ("infer", ctypes.c_void_p),
        ("shapes", ctypes.c_void_p),
        ("arena_size", ctypes.c_void_p),
        ("pool_create", ctypes.c_void_p),
        ("pool_destroy", ctypes.c_void_p),
        ("pool_resize", ctypes.c_void_p),
        ("error_text", ctypes.c_void_p),
        ("weights", ctypes.c_void_p),
        ("weights_bytes", ctypes.c_int64),
        ("output_sizes", ctypes.c_void_p),
        ("output_dims", ctypes.c_void_p),
        ("generate", ctypes.c_void_p),
        ("forget", ctypes.c_void_p),
    )


OLDEST_TABLE_BYTES = Table.generate.offset  # libraries of this ABI version may end here


class Descriptor(ctypes.Structure):
    """An input or output of the table: NUL-terminated name and dtype, `rank` dims with -1 for one that varies."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.c_void_p),
    )


ERROR_TEXTS = (
    "no error",
    "request: the arena is null or not at a multiple of 64",
    "request: a symbol is outside its range",
    "shapes: input dimensions do not fit each other",
    "shapes: tensors of these sizes are too large for any memory",
    "infer: sizes that the model has computed do not fit each other",
    "infer: a size that the model has computed exceeds its capacity, now raised: call shapes and infer again",
    "unknown error code",
    "infer: a loop was cancelled",
    "generate: no memory is left",
    "generate: ids must be one or more tokens from 0 to the number of words - 1",
    "generate: temperature must be 0 or more, top_k 0 or more, top_p above 0 and at most 1",
    "generate: logits must be numbers, not NaN",
)
(
    ERROR_ARENA,
    ERROR_SYMBOL,
    ERROR_SHAPE,
    ERROR_SIZE,
    ERROR_VALUE,
    ERROR_CAPACITY,
    ERROR_UNKNOWN,
    ERROR_CANCELLED,
    ERROR_MEMORY,
    ERROR_TOKENS,
    ERROR_SAMPLING,
    ERROR_LOGITS,
) = range(1, 13)
