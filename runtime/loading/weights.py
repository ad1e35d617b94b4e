"""External weights: a file beside the shared library, mapped into its memory and shared by all processes.

    m.weights   64 KiB header: magic, JSON {"bytes", "layout", "sha256"}, zeros
                the weights in the layout of the code, padded to a multiple of 64 KiB

`layout` identifies the code that can read them: models that differ only in the values of external weights have the same
one. A file is never changed in place, because processes that mapped it would see half of the change. It is replaced.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from aot.runtime.abi import MANIFEST_SECTION, WEIGHTS_PAGE
from aot.runtime.atomic import copy, replacing
from aot.runtime.errors import CorruptError, UsageError
from aot.runtime.loading.binary_file import binary_file
from aot.runtime.loading.digest import sha256
from aot.runtime.loading.seal import seal
from aot.runtime.regular import open_file
from aot.runtime.systems import memory

_MAGIC = b"AOT WEIGHTS 1\n"
_CHUNK_BYTES = 1 << 20


class WeightsInfo(NamedTuple):
    """Facts about the weights alone, without header and padding; both hashes are hexadecimal SHA-256."""

    bytes: int
    layout: str
    sha256: str


def beside(library: Path) -> Path:
    """Return the default path of a shared library's weights: `m.weights` beside `m.so`."""
    return library.with_suffix(".weights")


def content_hash(info: WeightsInfo) -> str:
    """Return the content hash of a model with external weights."""
    text = f"{info.layout}:{info.sha256}".encode()
    digest = sha256(len(text))
    digest.update(text)
    return digest.hexdigest()


def padded(size: int) -> int:
    """Return the size of `size` bytes of weights in memory and in the file, with padding."""
    return max(1, -(-size // WEIGHTS_PAGE)) * WEIGHTS_PAGE


def write(path: Path, info: WeightsInfo, parts: Iterable[bytes | memoryview]) -> None:
    """Write the file from the weights in order, atomically."""
    header = _MAGIC + json.dumps(info._asdict(), sort_keys=True).encode()
    with replacing(path) as new, new.open("wb") as stream:
        stream.write(header.ljust(WEIGHTS_PAGE, b"\0"))
        for part in parts:
            stream.write(part)
        stream.truncate(WEIGHTS_PAGE + padded(info.bytes))


def info_in(manifest: dict[str, object], where: str, key: str = "external") -> WeightsInfo | None:
    """Return the manifest's entry about external, or embedded, weights; None if there is none."""
    entry = manifest.get(key)
    return None if entry is None else _info(entry, f"{where}: {key} of the manifest")


def check_embedded(stream: BinaryIO, offset: int, info: WeightsInfo, name: str) -> None:
    """Raise CorruptError unless the weights in the open library, from `offset` on, have the hash of the manifest."""
    _check_hash(stream, offset, info, name)


def check(stream: BinaryIO, expected: WeightsInfo, name: str) -> None:
    """Raise CorruptError with the reason unless the open file holds the weights that are `expected`."""
    header = _header(stream, name)
    if header.layout != expected.layout:
        raise CorruptError(f"weights: {name}: must be those of this model, got those of another: {header.layout[:12]}")
    _check_contents(stream, header, name)
    if header.sha256 != expected.sha256:
        rule = f"must have the hash {expected.sha256[:12]} that the model was made with"
        raise CorruptError(f"weights: {name}: {rule}, got {header.sha256[:12]}; update_weights takes other values")


def map_into(stream: BinaryIO, address: int, size: int) -> None:
    """Map the weights of the file to the reserved memory at `address`."""
    memory.map_file(stream.fileno(), WEIGHTS_PAGE, address, padded(size))


def update_weights(library: Path | str, weights: Path | str) -> str:
    """Replace the external weights of the shared library `library` by those in `weights`.

    They must be other values of the same model, compiled with external weights. Both files are replaced, each
    atomically; loaded models keep the old ones. Returns the new content hash. Raises CorruptError if `weights` does not
    fit the model's code or is damaged, UsageError if the library's weights are embedded.
    """
    path, source = Path(library), Path(weights)
    with open_file(path, "weights") as stream:
        file = binary_file(stream, str(path))
        text, offset = file.section(MANIFEST_SECTION), file.find(MANIFEST_SECTION).offset
    tree = cast(dict[str, object], json.loads(text))
    old = info_in(tree, str(path))
    if old is None:
        raise UsageError(f"weights: {path}: must be compiled with --weights external, got embedded weights")
    with open_file(source, "weights") as stream:
        header = _header(stream, str(source))
        new = WeightsInfo(old.bytes, old.layout, header.sha256)
        check(stream, new, str(source))
        stream.seek(0)
        with replacing(beside(path)) as new_file, new_file.open("wb") as target:
            copy(stream, target)
    tree |= {"external": new._asdict(), "hash": content_hash(new)}
    changed = json.dumps(tree, sort_keys=True, separators=(",", ":")).encode("ascii")
    if len(changed) != len(text):
        raise CorruptError(f"weights: {path}: the manifest must keep its size of {len(text)} bytes, got {len(changed)}")
    with replacing(path) as new_file:
        with path.open("rb") as stream, new_file.open("wb") as target:
            copy(stream, target)
            target.seek(offset)
            target.write(changed)
        seal(new_file)
    return content_hash(new)


def _header(stream: BinaryIO, name: str) -> WeightsInfo:
    stream.seek(0)
    data = stream.read(WEIGHTS_PAGE)
    if not data.startswith(_MAGIC):
        raise CorruptError(f"weights: {name}: must begin with {_MAGIC.decode().strip()!r}, got {data[:8]!r}")
    if len(data) < WEIGHTS_PAGE:
        raise CorruptError(f"weights: {name}: must have a header of {WEIGHTS_PAGE} bytes, got {len(data)}")
    try:
        tree: object = json.loads(data[len(_MAGIC) :].rstrip(b"\0"))
    except (ValueError, RecursionError):
        raise CorruptError(f"weights: {name}: the header must be JSON, got something else") from None
    return _info(tree, f"{name}: the header")


def _info(tree: object, where: str) -> WeightsInfo:
    entry = cast(dict[str, object], tree) if isinstance(tree, dict) else {}
    size, layout, digest = (entry.get(key) for key in ("bytes", "layout", "sha256"))
    if isinstance(size, int) and 0 <= size < 1 << 48 and isinstance(layout, str) and isinstance(digest, str):
        return WeightsInfo(size, layout, digest)
    raise CorruptError(f"weights: {where} must hold bytes, layout and sha256, got {str(entry)[:60]}")


def _check_contents(stream: BinaryIO, info: WeightsInfo, name: str) -> None:
    expected, size = WEIGHTS_PAGE + padded(info.bytes), os.fstat(stream.fileno()).st_size
    if size != expected:
        raise CorruptError(f"weights: {name}: must have {expected} bytes, got {size}: it is cut short or damaged")
    _check_hash(stream, WEIGHTS_PAGE, info, name)


def _check_hash(stream: BinaryIO, offset: int, info: WeightsInfo, name: str) -> None:
    stream.seek(offset)
    digest, left = sha256(info.bytes), info.bytes
    while left:
        data = stream.read(min(_CHUNK_BYTES, left))
        digest.update(data)
        left -= len(data)
        if not data:
            break
    if digest.hexdigest() != info.sha256:
        actual = digest.hexdigest()[:12]
        raise CorruptError(f"weights: {name}: must have the hash {info.sha256[:12]}, got {actual}: edited or damaged")
