"""Bytes that restore a sequence: those of another model, and damaged ones, are refused and nothing is allocated."""

from __future__ import annotations

import struct
from collections.abc import Callable
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
from numpy.typing import NDArray

from aot.runtime import CompiledModel, Generator, load
from aot.runtime.errors import UsageError
from tests.frontends.gguf.networks import WORDS, Network
from tests.libraries import library

IDS = [5, 1, 40, 7, 7, 63, 2]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> CompiledModel:
    folder = tmp_path_factory.mktemp("saved")
    return load(library(Network("llama", "Q4_0").write(folder / "m.gguf"), folder / "m.so"), threads=1)


def test_an_empty_sequence_is_restored(model: CompiledModel) -> None:
    generator = Generator(model)
    generator.feed(IDS)
    generator.restore(Generator(model).save())
    assert generator.tokens == ()


Arrays = dict[str, NDArray[Any]]
CHANGES: dict[str, Callable[[Arrays], Arrays]] = {
    "none of a variable": lambda a: {k: v for k, v in a.items() if k != "v0"},
    "one more": lambda a: a | {"v99": a["v0"]},
    "other names": lambda a: {("w0" if k == "v0" else k): v for k, v in a.items()},
    "f64": lambda a: a | {"v0": a["v0"].astype(np.float64)},
    "f16": lambda a: a | {"v0": a["v0"].astype(np.float16)},
    "i32 of the same size": lambda a: a | {"v0": a["v0"].view(np.int32)},
    "the other byte order": lambda a: a | {"v0": a["v0"].astype(">f4")},
    "objects": lambda a: a | {"v0": np.array([None])},
    "twice the rows": lambda a: a | {"v0": np.concatenate([a["v0"], a["v0"]])},
    "two rows of all": lambda a: {k: v if k == "tokens" else np.concatenate([v, v]) for k, v in a.items()},
    "no rows": lambda a: {k: v if k == "tokens" else v[:0] for k, v in a.items()},
    "a token less": lambda a: a | {"v0": a["v0"][:, :, 1:]},
    "a token less of all": lambda a: a | {"tokens": a["tokens"][1:]},
    "other axes": lambda a: a | {"v0": np.ascontiguousarray(a["v0"].swapaxes(2, 3))},
    "fewer dimensions": lambda a: a | {"v0": a["v0"].reshape(-1)},
    "the order of columns": lambda a: a | {"v0": np.asfortranarray(a["v0"])},
    "no tokens": lambda a: a | {"tokens": a["tokens"][:0]},
    "tokens in a table": lambda a: a | {"tokens": a["tokens"][None]},
    "tokens of f64": lambda a: a | {"tokens": a["tokens"].astype(np.float64)},
    "negative tokens": lambda a: a | {"tokens": -1 - a["tokens"]},
    "tokens of another model": lambda a: a | {"tokens": a["tokens"] + WORDS},
}


@pytest.mark.parametrize("name", CHANGES)
def test_sequences_of_other_models_are_not_restored(model: CompiledModel, name: str) -> None:
    generator, stream = Generator(model), BytesIO()
    generator.feed(IDS)
    with np.load(BytesIO(generator.save())) as found:
        np.savez(stream, **CHANGES[name](dict(found)))
    with pytest.raises(UsageError, match="restore: needs what save"):
        generator.restore(stream.getvalue())
    assert generator.tokens == tuple(IDS)


def test_compressed_arrays_are_not_restored(model: CompiledModel) -> None:
    generator, stream = Generator(model), BytesIO()
    generator.feed(IDS)
    with np.load(BytesIO(generator.save())) as found:
        np.savez_compressed(stream, **dict(found))
    with pytest.raises(UsageError, match="restore: needs what save"):
        generator.restore(stream.getvalue())


@pytest.mark.parametrize("dtype", ["<f4", "<q9", "|O", "|V0", "|V4", "<c8", "<M8"])
@pytest.mark.parametrize("shape", ["99999999999,", "9" * 30 + ",", "0, 99999999999", "1,"])
def test_headers_that_lie_are_refused(model: CompiledModel, dtype: str, shape: str) -> None:
    """Nothing is allocated for sizes that only a header has, and unknown types are damaged bytes, too."""
    generator, stream = Generator(model), BytesIO()
    generator.feed(IDS)
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({shape}), }}".ljust(117) + "\n"
    with ZipFile(BytesIO(generator.save())) as old, ZipFile(stream, "w") as new:
        for name in old.namelist():
            array = b"\x93NUMPY\x01\0" + struct.pack("<H", 118) + header.encode() + bytes(4)
            new.writestr(name, array if name == "v0.npy" else old.read(name))
    with pytest.raises(UsageError, match="restore: needs what save"):
        generator.restore(stream.getvalue())


def test_mutants_of_saved_bytes_are_restored_whole_or_not_at_all(model: CompiledModel) -> None:
    generator, rng = Generator(model), np.random.default_rng(1)
    generator.feed(IDS)
    saved = generator.save()
    refused = 0
    for _ in range(300):
        made = bytearray(saved)
        at, size = int(rng.integers(0, len(made))), int(rng.integers(1, 9))
        match int(rng.integers(0, 3)):
            case 0:
                made[at : at + size] = rng.integers(0, 256, size, np.uint8).tobytes()
            case 1:
                del made[at : at + size * int(rng.choice([1, 100]))]
            case _:
                made[at:at] = made[:size]
        try:
            generator.restore(bytes(made))
        except UsageError:
            refused += 1
        assert generator.tokens == tuple(IDS)
    assert refused > 250
    assert generator.save() == saved
