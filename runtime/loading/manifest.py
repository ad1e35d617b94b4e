"""The checked manifest of a compiled model: facts that a loader may rely on after `parse`."""

from __future__ import annotations

import json
from math import prod
from typing import NamedTuple, cast

from aot.runtime.abi import ABI_VERSION, CANCEL_WORDS, MANIFEST_VERSION, DType
from aot.runtime.errors import CorruptError, PlatformError

Json = dict[str, object]
_MAX_RANK = 64


class Dim(NamedTuple):
    """A dynamic dimension: a symbol with its range, or an expression over symbols. `late`: it is data-dependent."""

    text: str
    low: int = 0
    high: int | None = None
    late: bool = False

    def __str__(self) -> str:
        return self.text


class TensorInfo(NamedTuple):
    """An input or output. `align`: its address must be a multiple of it.

    `string`: name of the tensor of strings that it is one of three parts of; see `aot.runtime.arrays.strings`.
    `default`: offset in the weights, in bytes, of the value of an optional input; None: it is required.
    """

    name: str
    names: tuple[str, ...]
    dtype: DType
    shape: tuple[int | Dim, ...]
    align: int
    string: str = ""
    default: int | None = None

    @property
    def late(self) -> bool:
        """True if its shape is data-dependent: known only after an inference."""
        return any(isinstance(d, Dim) and d.late for d in self.shape)

    @property
    def any_name(self) -> str:
        """Name of the tensor, as OpenVINO calls it."""
        return self.name

    @property
    def element_type(self) -> DType:
        """Type of the elements, as OpenVINO calls it."""
        return self.dtype

    def __str__(self) -> str:
        return f"{self.dtype.value}[{','.join(map(str, self.shape))}]"


class CacheInfo(NamedTuple):
    """Place of a variable that grows along its dimension `axis`, beside others that do.

    `room`: byte of an i64, the tokens that all of them have room for. Row r begins `r * row * room` elements after
    byte `data`, the variable in it `before * room` elements later; `last`: tokens are neighbours in memory.
    """

    axis: int
    room: int
    data: int
    row: int
    before: int
    last: bool


class VariableInfo(NamedTuple):
    """A variable, and its offset in the state of a request: see `variables` in `aot.runtime.abi`."""

    tensor: TensorInfo
    flag: int
    data: int | None
    cache: CacheInfo | None = None

    @property
    def varying(self) -> tuple[int, ...]:
        """Indices of the dynamic dimensions."""
        return tuple(k for k, n in enumerate(self.tensor.shape) if isinstance(n, Dim))

    @property
    def entries(self) -> int:
        """Number of i64 entries from the flag on."""
        return 1 if self.data is not None else 2 + len(self.varying)


class CallInfo(NamedTuple):
    kernel: str
    layers: tuple[str, ...]


class RuleInfo(NamedTuple):
    """Two expressions over symbols that must be equal, else `shapes` or `infer` returns an error; `text`: the rule."""

    one: str
    other: str
    text: str


class Manifest(NamedTuple):
    """The checked manifest; `json` is the whole text as parsed."""

    name: str
    tag: str
    machine: int
    features: tuple[str, ...]
    symbols: tuple[str, ...]
    late: tuple[str, ...]  # symbols that `infer` sets
    stored: int  # number of entries of a request's symbols: symbols, data-dependent ones, capacities, computed sizes
    cancel: int | None  # index in the symbols of the words that end a loop; None: all loops have a static bound
    rules: tuple[RuleInfo, ...]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    calls: tuple[CallInfo, ...]
    variables: tuple[VariableInfo, ...]
    options: Json
    json: Json


def parse(data: bytes, where: str) -> Manifest:
    """Return the manifest from its JSON; PlatformError for another version, CorruptError if it is not valid."""
    try:
        tree: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptError(f"load: {where}: the manifest must be JSON, got {error}") from None
    return from_json(tree, where)


def from_json(tree: object, where: str) -> Manifest:
    """Return the manifest, as `parse` does, from the parsed JSON."""
    root = _Reader(where).entry(tree)
    for key, known in (("manifest", MANIFEST_VERSION), ("abi", ABI_VERSION)):
        version = root.integer(key)
        if version != known:
            raise PlatformError(f"load: {where}: {key} version must be {known}, got {version}; compile it again")
    tag = root.text("tag")
    if not tag or not tag.isascii() or not tag.replace("_", "").isalnum():
        raise CorruptError(f"load: {where}: the tag must be part of a C name, got {tag!r}")
    symbols, late = tuple(s.text("name") for s in root.objects("symbols")), root.texts("late")
    stored = len(symbols) + len(late) + len(root.items("capacities")) + root.natural("computed")
    _check_described(root)
    return Manifest(
        name=root.text("name"),
        tag=tag,
        machine=root.integer("machine"),
        features=root.texts("features"),
        symbols=symbols,
        late=late,
        stored=stored,
        cancel=_cancel(root, stored),
        rules=tuple(RuleInfo(r.text("one"), r.text("other"), r.text("text")) for r in root.objects("rules")),
        inputs=_tensors(root, "inputs"),
        outputs=_tensors(root, "outputs"),
        calls=tuple(CallInfo(c.text("kernel"), c.texts("layers")) for c in root.objects("calls")),
        variables=tuple(_variable(v) for v in root.objects("variables")),
        options=root.inner("options").json,
        json=root.json,
    )


def _check_described(root: _Reader) -> None:
    """Raise CorruptError unless the entries that only `aot info` reads are valid."""
    for key in ("hash", "triple"):
        root.text(key)
    root.natural("weights")
    for facts in (root.inner("toolchain"), root.inner("options")):
        for key, value in facts.json.items():
            _ = facts.text(key) if isinstance(value, str) else None
    _check_ranges(root.inner("options"))
    if "weight_bits" in root.json:
        root.natural("weight_bits")
    for symbol in root.objects("symbols"):
        symbol.integer("min")
        _ = symbol.json.get("max") is None or symbol.integer("max")
    for capacity in root.objects("capacities"):
        capacity.text("of")
        capacity.integer("initial")
    if "certificate" in root.json:
        _check_certificate(root.inner("certificate"))
    for level in root.objects("levels") if "levels" in root.json else ():
        level.text("target")
        level.texts("features")
        level.natural("calls")
    for version in root.objects("versions") if "versions" in root.json else ():
        sizes = version.inner("sizes")
        for name in sizes.json:
            sizes.integer(name)
        _ = version.natural("first"), version.natural("end")


def _check_ranges(options: _Reader) -> None:
    """Raise CorruptError unless the ranges of sizes that were asked for are valid; in memory, lists are tuples."""
    ranges = options.json.get("dims", [])
    valid = isinstance(ranges, (list, tuple)) and all(map(_is_range, cast("list[object]", ranges)))
    if not valid:
        raise options.wrong("dims", "a list of names, each with the least and the greatest size")


def _is_range(dim: object) -> bool:
    match dim:
        case [str(), int(), int() | None]:
            return True
        case _:
            return False


def _check_certificate(reader: _Reader) -> None:
    """Raise CorruptError unless the entries of a certificate that `aot info` reads are valid."""
    _ = reader.natural("version"), reader.natural("noise"), reader.text("verdict")
    for sample in reader.objects("samples"):
        sample.text("kind")
    outputs = reader.inner("outputs")
    for name in outputs.json:
        _ = outputs.inner(name).error("graph"), outputs.inner(name).error("code")
    layers = reader.inner("layers")
    _ = layers.natural("count"), layers.natural("beyond"), layers.text("largest"), layers.error("error")


def _cancel(root: _Reader, stored: int) -> int | None:
    if "cancel" not in root.json:
        return None
    if root.natural("cancel") != stored - CANCEL_WORDS:
        raise root.wrong("cancel", f"{stored - CANCEL_WORDS}, behind all sizes")
    return stored - CANCEL_WORDS


def _tensors(root: _Reader, key: str) -> tuple[TensorInfo, ...]:
    """Return inputs or outputs; strings are three tensors: begins and ends of one shape, then bytes."""
    tensors = tuple(_tensor(t, root.natural("weights")) for t in root.objects(key))
    parts = [info for info in tensors if info.string]
    for group in (parts[k : k + 3] for k in range(0, len(parts), 3)):
        at = tensors.index(group[0])
        whole = [info.dtype for info in group] == [DType.I32, DType.I32, DType.U8] and len(group[2].shape) == 1
        if not whole or list(tensors[at : at + 3]) != group or len(group[0].shape) != len(group[1].shape):
            raise root.wrong(key, f"a list with begins, ends and symbols of the strings {group[0].string!r}")
    return tensors


def _tensor(reader: _Reader, weights: int) -> TensorInfo:
    dtype = reader.text("dtype")
    if dtype not in DType._value2member_map_ or not DType(dtype).bits:
        raise reader.wrong("dtype", "an element type")
    shape = reader.items("shape")
    align = reader.natural("align")
    if len(shape) > _MAX_RANK:
        raise reader.wrong("shape", f"a list of at most {_MAX_RANK} dimensions")
    if align not in (1, 2, 4, 8, 16, 32, 64):
        raise reader.wrong("align", "a power of two up to 64")
    dims = tuple(_dim(reader, d) for d in shape)
    string = reader.text("string") if "string" in reader.json else ""
    default = None
    if "default" in reader.json:
        default = reader.natural("default")
        size = prod(d for d in dims if isinstance(d, int)) * DType(dtype).stored_bytes
        if any(isinstance(d, Dim) for d in dims) or default % 64 or default + size > weights:
            raise reader.wrong("default", "a place in the weights of an input of fixed size")
    return TensorInfo(reader.text("name"), reader.texts("names"), DType(dtype), dims, align, string, default)


def _variable(reader: _Reader) -> VariableInfo:
    shape, dtype, name = reader.items("shape"), reader.text("dtype"), reader.text("name")
    if dtype not in DType._value2member_map_ or not DType(dtype).bits:
        raise reader.wrong("dtype", "an element type")
    if not all(isinstance(n, int) and -1 <= n < 1 << 48 for n in shape) or len(shape) > _MAX_RANK:
        raise reader.wrong("shape", f"a list of at most {_MAX_RANK} sizes, with -1 where one varies")
    data = None if reader.json.get("data") is None else reader.natural("data")
    if (data is None) is not (-1 in shape):
        raise reader.wrong("data", "a place exactly where no dimension varies")
    dims = tuple(Dim("?") if n == -1 else cast(int, n) for n in shape)
    info = VariableInfo(TensorInfo(name, (name,), DType(dtype), dims, 1), reader.natural("flag"), data)
    return info if reader.json.get("cache") is None else _cached(info, reader.inner("cache"))


def _cached(info: VariableInfo, reader: _Reader) -> VariableInfo:
    axis, room, data, row, before = (reader.natural(key) for key in ("axis", "room", "data", "row", "before"))
    cache = CacheInfo(axis, room, data, row, before, bool(reader.json.get("last")))
    if cache.axis not in info.varying or cache.axis == 0 or set(info.varying) - {0, cache.axis}:
        raise reader.wrong("axis", "a dimension that varies, beside the first one at most")
    elements = prod(n for n in info.tensor.shape if isinstance(n, int))
    if cache.before + elements > cache.row or cache.room % 8 or cache.data % 64:
        raise reader.wrong("row", "the elements of a token of all variables")
    return info._replace(cache=cache)


def _dim(reader: _Reader, item: object) -> int | Dim:
    if isinstance(item, int) and not isinstance(item, bool) and 0 <= item < 1 << 48:
        return item
    if isinstance(item, dict):
        entry = reader.entry(item)
        if "expr" in entry.json:
            return Dim(entry.text("expr"))
        if "late" in entry.json:
            return Dim(entry.text("late"), late=True)
        high = entry.json.get("max")
        if high is None or isinstance(high, int):
            return Dim(entry.text("symbol"), entry.integer("min"), high)
    raise reader.wrong("shape", "a list of numbers, symbols and expressions")


class _Reader:
    """Typed access to an object of the manifest."""

    def __init__(self, where: str, json: Json | None = None) -> None:
        self.where = where
        self.json: Json = json if json is not None else {}

    def entry(self, item: object) -> _Reader:
        if not isinstance(item, dict):
            raise CorruptError(f"load: {self.where}: the manifest must hold an object here, got {type(item).__name__}")
        return _Reader(self.where, cast(Json, item))

    def inner(self, key: str) -> _Reader:
        """Return a reader of the object at `key`."""
        if not isinstance(self.json.get(key), dict):
            raise self.wrong(key, "an object")
        return self.entry(self.json.get(key))

    def wrong(self, key: str, rule: str) -> CorruptError:
        got = str(self.json.get(key))[:60].encode("ascii", "backslashreplace").decode()
        return CorruptError(f"load: {self.where}: {key} of the manifest must be {rule}, got {got}")

    def integer(self, key: str) -> int:
        value = self.json.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong(key, "an integer")
        return value

    def natural(self, key: str) -> int:
        value = self.integer(key)
        if not 0 <= value < 1 << 48:
            raise self.wrong(key, "a size")
        return value

    def error(self, key: str) -> float:
        """Return an error; an infinite one is the text `inf`."""
        value = self.json.get(key)
        if value == "inf" or (isinstance(value, int | float) and not isinstance(value, bool)):
            return float(cast("float | str", value))
        raise self.wrong(key, "an error")

    def text(self, key: str) -> str:
        value = self.json.get(key)
        if not isinstance(value, str) or not _is_encodable(value):
            raise self.wrong(key, "a string of Unicode characters")
        return value

    def items(self, key: str) -> list[object]:
        value = self.json.get(key)
        if not isinstance(value, list):
            raise self.wrong(key, "a list")
        return cast(list[object], value)

    def texts(self, key: str) -> tuple[str, ...]:
        values = self.items(key)
        if not all(isinstance(v, str) and _is_encodable(v) for v in values):
            raise self.wrong(key, "a list of strings of Unicode characters")
        return tuple(cast(list[str], values))

    def objects(self, key: str) -> list[_Reader]:
        return [self.entry(item) for item in self.items(key)]


def _is_encodable(text: str) -> bool:
    """True if a text can be printed; JSON may contain unpaired surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
