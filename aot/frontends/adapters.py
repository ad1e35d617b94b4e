"""Reads low-rank adapters (LoRA) for libraries that were compiled with `--lora-rank`: folders of PEFT, and GGUF.

    W + scale B A     ->     lora_a: A of all matrices, side by side     lora_b: scale B^T of all, side by side

Matrices of a smaller rank are filled up with zeros.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from math import sqrt
from pathlib import Path
from typing import cast

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.frontends.gguf.container import read_container
from aot.frontends.gguf.weights import halves_first
from aot.frontends.huggingface.config import ARCHITECTURES
from aot.frontends.huggingface.container import read_file_tensors, read_json
from aot.frontends.language.config import Values
from aot.ir.types import Array
from aot.runtime.abi import ARENA_ALIGN
from aot.runtime.arrays.tensors import aligned_empty
from aot.runtime.errors import CorruptError, UnsupportedError, UsageError
from aot.runtime.generation.interface import LORA_A, LORA_B
from aot.runtime.loading.manifest import Manifest
from aot.text.library_texts import ADAPTER

CONFIG, TENSORS = "adapter_config.json", "adapter_model.safetensors"
PEFT_PREFIX = "base_model.model."
PARTS = re.compile(r"(.+)\.lora_(a|b)(?:\.default)?(?:\.weight)?", re.IGNORECASE)  # parts of a tensor's name


@dataclass(frozen=True, slots=True)
class Pair:
    """The matrices of one product: `a` [rank, columns] and `b` [rows, rank], which is multiplied by a scale."""

    a: Array
    b: Array


def read_adapter(path: Path, manifest: Manifest) -> dict[str, Array]:
    """Return the inputs of a language model for an adapter, a folder or a file.

    CorruptError for files that are damaged; UnsupportedError for adapters of other kinds, and of matrices that the
    library cannot adapt; UsageError for a library without `--lora-rank`, and for a greater rank.
    """
    entries = manifest.json.get(ADAPTER)
    if not isinstance(entries, list):
        raise UsageError(f"--lora: {manifest.name}: must be compiled with --lora-rank, got a library without it")
    products = cast("list[tuple[str, int, int, int]]", entries)
    pairs = _peft(path) if path.is_dir() else _gguf(path, {name: heads for name, _, _, heads in products})
    known = {name for name, *_ in products}
    if others := sorted(pairs.keys() - known):
        rule = f"{path.name}: adapters of {', '.join(sorted({name.split('.')[-1] for name in known}))} can be read"
        raise UnsupportedError(f"--lora: {rule}, got {others[0][:80]!r}")
    rank, most = max((len(p.a) for p in pairs.values()), default=0), _most(manifest)
    if rank > most:
        raise UsageError(f"--lora: {path.name}: the rank can be at most {most} (--lora-rank), got {rank}")
    sizes = sum(columns for _, columns, _, _ in products), sum(rows for _, _, rows, _ in products)
    a, b = (aligned_empty((rank, n), np.dtype(np.float32), ARENA_ALIGN, zero=True)[0] for n in sizes)
    column = row = 0
    for name, columns, rows, _ in products:
        if name in pairs:
            pair = pairs[name]
            if pair.a.shape[1:] != (columns,) or pair.b.shape != (rows, len(pair.a)):
                rule = f"{path.name}: {name}: matrices are [rank, {columns}] and [{rows}, rank]"
                raise CorruptError(f"--lora: {rule}, got {list(pair.a.shape)} and {list(pair.b.shape)}")
            a[: len(pair.a), column : column + columns] = pair.a
            b[: len(pair.a), row : row + rows] = pair.b.T
        column, row = column + columns, row + rows
    return {LORA_A: a, LORA_B: b}


def digest_of(adapter: Mapping[str, Array]) -> bytes:
    """Return a digest of the inputs for an adapter: another file of the same name has another one."""
    digest = blake2b(digest_size=16)
    for name in sorted(adapter):
        array = np.ascontiguousarray(adapter[name])
        digest.update(f"{name}{array.shape}".encode() + array.tobytes())
    return digest.digest()


def _most(manifest: Manifest) -> int:
    dim = next(t.shape[0] for t in manifest.inputs if t.name == LORA_A)
    return dim if isinstance(dim, int) else dim.high or 0


def _pairs(tensors: Mapping[str, Array], file: str) -> dict[str, tuple[Array, Array]]:
    """Return the matrices A and B by the names of their products."""
    pairs_by_module: dict[str, dict[str, Array]] = {}
    for name, array in tensors.items():
        parts = PARTS.fullmatch(name)
        if parts is None or array.ndim != 2:
            rule = "tensors are matrices lora_A and lora_B (no DoRA, no biases, no other modules)"
            raise UnsupportedError(f"--lora: {file}: {rule}, got {name[:80]!r} {list(array.shape)}")
        pairs_by_module.setdefault(parts[1], {})[parts[2].lower()] = array
    if lone := next((name for name, pair in pairs_by_module.items() if len(pair) != len("ab")), None):
        raise CorruptError(f"--lora: {file}: matrices lora_A and lora_B come in pairs, got one of {lone[:80]!r}")
    return {name: (pair["a"], pair["b"]) for name, pair in pairs_by_module.items()}


# ---- folders of PEFT


def _peft(folder: Path) -> dict[str, Pair]:
    config = Values(f"{folder.name}/{CONFIG}", read_json(folder / CONFIG))
    kind, dora = config.find("peft_type"), config.find("use_dora", False)
    if kind != "LORA" or dora is not False:
        rule = "adapters of type LORA without use_dora can be read"
        raise UnsupportedError(f"--lora: {config.file}: {rule}, got {str(kind)[:60]}, use_dora {str(dora)[:60]}")
    tensors = {
        name.removeprefix(PEFT_PREFIX): t.array.astype(np.float32)
        for name, t in read_file_tensors(folder / TENSORS).items()
    }
    pairs: dict[str, Pair] = {}
    for name, (a, b) in _pairs(tensors, folder.name).items():
        rank = len(a)
        scale = _alpha(config, name) / (sqrt(rank) if config.find("use_rslora") is True else rank) if rank else 0.0
        products = _products(name)
        for product, rows in zip(products, np.array_split(b, len(products)), strict=True):
            pairs[product] = Pair(a, scale * rows)
    return pairs


def _alpha(config: Values, name: str) -> float:
    """Return the factor of a module, which patterns name by its end."""
    given = config.find("alpha_pattern", {})
    patterns: Mapping[str, object] = cast("Mapping[str, object]", given) if isinstance(given, dict) else {}
    for pattern in patterns:
        if not re.fullmatch(r"[\w.]+", pattern):
            rule = "alpha_pattern with ends of names can be read"
            raise UnsupportedError(f"--lora: {config.file}: {rule}, got {pattern[:60]!r}")
        if f".{name}".endswith(f".{pattern}"):
            return Values(config.file, patterns).real(pattern)
    return config.real("lora_alpha")


def _products(module: str) -> Sequence[str]:
    """Return the library's names for the product of a module, or for the halves of it; its own name for others."""
    for names in {id(a.names): a.names for a in ARCHITECTURES.values()}.values():
        match = re.fullmatch(rf"{re.escape(names.layers)}\.(\d+)\.(.+)", module)
        if match is None:
            continue
        halves = [part for part, (end, _) in names.halves.items() if end == match[2]]
        parts = halves or [part for part, end in names.parts.items() if end == match[2]]
        if parts and not (names.interleaved and parts == ["attn_qkv"]):
            return [f"blk.{match[1]}.{part}" for part in parts]
    return [module]


# ---- GGUF


def _gguf(path: Path, heads: Mapping[str, int]) -> dict[str, Pair]:
    """Return the matrices of a file; rows of queries and keys of a llama are put in the order of the library's."""
    container = read_container(path)
    v = Values(f"--lora: {path.name}: GGUF", container.metadata)
    kind = v.find("adapter.type", v.find("general.type"))
    if kind != "lora":
        raise UnsupportedError(f"{v.file}: adapters of type lora can be read, got {str(kind)[:60]}")
    tensors = {
        name.replace(".weight.", "."): t.format.floats(t.raw).reshape(t.shape) for name, t in container.tensors.items()
    }
    pairs: dict[str, Pair] = {}
    for name, (a, b) in _pairs(tensors, path.name).items():
        scale = v.real("adapter.lora.alpha", float(len(a))) / max(len(a), 1)
        if v.find("general.architecture") == "llama" and name.endswith(("attn_q", "attn_k")) and name in heads:
            size = len(b) // heads[name]
            b = b[halves_first(heads[name], size, size)]
        pairs[name] = Pair(a, scale * b)
    return pairs
