"""GGUF: formats of tensors, networks of each architecture against their meaning in NumPy, and damaged files."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from aot import stages
from aot.compilation.compilation import Compilation
from aot.compilation.jit import in_memory
from aot.frontends import read_model
from aot.frontends.gguf.blocks import FORMATS
from aot.frontends.gguf.container import Stored
from aot.frontends.gguf.numbers import Part, PartOfBlocks, Positive, quantized
from aot.ir.types import TensorType
from aot.ir.values.deferred import Deferred
from aot.lowering.numbers.group_sums import Joined, JoinedHalves
from aot.opset.deferred_parts import part_of
from aot.runtime.abi import DType
from aot.runtime.errors import AotError, CorruptError, UnsupportedError
from tests.frontends.gguf.files import TYPES, meaning, random_bytes, write
from tests.frontends.gguf.networks import WIDTH, Network
from tests.frontends.gguf.references import inputs
from tests.inferred import results_of

CLOSE = 2e-4  # of the range of the logits: f32 against f64
IDS = [5, 1, 40, 7, 7, 63, 2, 19, 30]

NETWORKS = {
    "llama": Network("llama", layers=2),
    "llama, rates with factors": Network("llama", factors=True, tied=False),
    "qwen2": Network("qwen2"),
    "qwen3": Network("qwen3", heads=4, head=32),
    "gemma3": Network("gemma3", window=4, layers=6),
    "Q4_0": Network("llama", "Q4_0"),
    "Q4_1": Network("qwen2", "Q4_1"),
    "Q8_0": Network("qwen3", "Q8_0"),
    "Q4_K": Network("llama", "Q4_K"),
    "Q6_K": Network("llama", "Q6_K"),
    "Q2_K": Network("llama", "Q2_K"),
    "IQ4_XS": Network("qwen3", "IQ4_XS"),
    "TQ2_0": Network("qwen2", "TQ2_0"),
}
COMPILED = ("llama, rates with factors", "Q4_0", "Q4_K", "Q6_K")  # `tests/text` compiles Q8_0


@pytest.mark.parametrize("kind", TYPES)
def test_formats_mean_what_ggml_says(kind: str) -> None:
    form = next(f for f in FORMATS.values() if f.name == kind)
    raw = random_bytes(kind, (4, 512), 1)
    found = form.floats(np.frombuffer(raw, np.uint8))
    np.testing.assert_allclose(found, meaning(kind, raw), rtol=1e-6, atol=1e-7)
    if form.split is not None:
        blocks = form.split(np.frombuffer(raw, np.uint8).reshape(-1, form.bytes))
        signed = blocks.numbers.dtype == np.int8
        positive = Positive(blocks, -1 if signed and blocks.numbers.min() == -128 else 0)
        numbers, zeros, scales = map(positive.part, (Part.NUMBERS, Part.ZEROS, Part.SCALES))
        assert (scales > 0).all()
        np.testing.assert_allclose((numbers - zeros) * scales, blocks.floats, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q4_K"])
def test_numbers_two_in_a_byte_are_joined_as_single_ones(kind: str) -> None:
    form = next(f for f in FORMATS.values() if f.name == kind)
    numbers = quantized(Stored("w", (3, 512), form, np.frombuffer(random_bytes(kind, (3, 512), 2), np.uint8))).numbers
    assert isinstance(numbers.op, PartOfBlocks)
    found = numbers.op.in_halves(512)
    assert found is not None
    halves = Deferred(found[0], numbers.inputs, numbers.types, TensorType(DType.U8, (3, *found[1])))
    single = numbers.array().view(np.uint8).reshape(3, 512)
    for fields, together in ((4, 2), (2, 4)):
        joined = Joined(1, 32, fields, together, 4).reference(single)
        np.testing.assert_array_equal(JoinedHalves(32, together).reference(halves.array()), joined)
    assert (halves.rows(1, 2) == halves.array()[1:2]).all()


@pytest.mark.parametrize("kind", [k for k in TYPES if k not in ("F32", "F16", "BF16")])
def test_numbers_of_some_rows_are_those_of_all(kind: str) -> None:
    form = next(f for f in FORMATS.values() if f.name == kind)
    raw, order = np.frombuffer(random_bytes(kind, (12, 512), 2), np.uint8), np.arange(12)[::-1] ^ 1
    stored = Stored("w", (12, 512), form, raw)
    for by in (None, order):
        parts = quantized(stored, by)
        numbers, zeros, scales = (part_of(x, 0, 3, 8) for x in (parts.numbers, parts.zeros, parts.scales))
        assert isinstance(numbers, Deferred) and isinstance(zeros, Deferred) and isinstance(scales, Deferred)
        assert (parts.numbers.rows(3, 8) == numbers.array()).all()
        assert parts.has_zeros == bool(parts.zeros.array().any())
        taken = np.arange(3, 8) if by is None else by[3:8]
        found = (numbers.array().astype(np.float32) - zeros.array()) * scales.array()
        wanted = np.array(meaning(kind, raw.tobytes())).reshape(12, 512)[taken]
        np.testing.assert_allclose(found.reshape(5, 512), wanted, rtol=1e-5, atol=1e-6)


def made_of(name: str, folder: Path) -> Compilation:
    """Return the compilation of a network that gives all logits, in f32."""
    return stages(NETWORKS[name].write(folder / "m.gguf"), level=None, activations="f32", last_logits=False)


def check_logits(name: str, run: Callable[[dict[str, np.ndarray]], np.ndarray]) -> None:
    """Compare a chunk and single tokens after it with the network's meaning; `run` keeps the sequence."""
    first = run(inputs(IDS[:6], 0))
    found = [first[0], *(run(inputs([IDS[n]], n))[0] for n in range(6, len(IDS)))]
    expected = NETWORKS[name].logits(IDS)
    np.testing.assert_allclose(np.concatenate(found), expected, rtol=0, atol=CLOSE * np.ptp(expected))


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_mean_what_their_architecture_says(name: str, tmp_path: Path) -> None:
    """By the references of the opset, after all passes; types that are inferred hold."""
    graph, state = made_of(name, tmp_path).optimized, dict[str, np.ndarray]()

    def run(feed: dict[str, np.ndarray]) -> np.ndarray:
        return results_of(graph, [feed[node.name] for node in graph.parameters], state=state)[0]

    check_logits(name, run)


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_networks_compute_it(name: str, tmp_path: Path) -> None:
    """`huggingface/test_transformers.py` compiles the architectures in f32."""
    request = in_memory(made_of(name, tmp_path).built).create_infer_request()
    check_logits(name, lambda feed: request.infer(feed)["logits"])


@pytest.mark.parametrize(
    ("kind", "each", "activations"),
    [("Q4_0", 0.5 + 5 / 32, "f32"), ("Q4_0", 0.5 + 5 / 32, "int8"), ("Q6_K", 1 + 8 / 16, "int8"), ("F32", 4, "f32")],
)
def test_an_embedding_that_is_also_the_head_lies_in_the_library_once(
    kind: str, each: float, activations: str, tmp_path: Path
) -> None:
    few, many = (
        stages(
            Network("llama", kind, layers=1, words=words).write(tmp_path / "m.gguf"),
            level=None,
            activations=activations,
        ).program.constant_bytes
        for words in (1024, 2048)
    )
    assert many - few < 1024 * WIDTH * each + 4096


def test_the_tokenizer_stays_with_the_graph(tmp_path: Path) -> None:
    graph = read_model(NETWORKS["llama"].write(tmp_path / "m.gguf"))
    kept = graph.rt_info["gguf"]
    assert isinstance(kept, dict)
    assert kept["tokenizer.ggml.model"] == "gpt2"
    assert kept["tokenizer.ggml.eos_token_id"] == "2"
    assert '"t63"' in str(cast("dict[str, object]", kept)["tokenizer.ggml.tokens"])


WRONG = {
    "another architecture": ({"general.architecture": "mamba"}, UnsupportedError, "architectures llama, .* got mamba"),
    "no layers": ({"llama.block_count": 0}, CorruptError, "llama.block_count is an integer from 1"),
    "more layers": ({"llama.block_count": 3}, CorruptError, "the network must have a tensor 'blk.2.attn_norm.weight'"),
    "fewer layers": ({"llama.block_count": 1}, UnsupportedError, "all tensors belong to the network, got 9 others"),
    "a text for a number": ({"llama.embedding_length": "wide"}, CorruptError, "embedding_length is an integer"),
    "heads that do not divide": ({"llama.attention.head_count_kv": 3}, CorruptError, "is a multiple of"),
    "shared experts": (
        {"llama.expert_count": 8, "llama.expert_used_count": 2, "llama.expert_shared_count": 1},
        UnsupportedError,
        "networks without shared experts can be read",
    ),
    "more experts than there are": (
        {"llama.expert_count": 8, "llama.expert_used_count": 9},
        CorruptError,
        "expert_used_count is an integer from 1 to 8",
    ),
    "another scaling": ({"llama.rope.scaling.type": "longrope"}, UnsupportedError, "yarn can be read, got longrope"),
    "a base of YaRN": (
        {"llama.rope.scaling.type": "yarn", "llama.rope.freq_base": 1.0},
        CorruptError,
        "freq_base is more than 1, got 1.0",
    ),
    "an odd alignment": ({"general.alignment": 33}, CorruptError, "the alignment is a power of two, got 33"),
    "another width": ({"llama.embedding_length": 128}, CorruptError, "'token_embd.weight' must have rows of 128"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mismatched_metadata_is_refused(name: str, tmp_path: Path) -> None:
    changed, error, text = WRONG[name]
    network = NETWORKS["llama"]
    path = write(tmp_path / "m.gguf", network.metadata | changed, network.tensors)
    with pytest.raises(error, match=text):
        read_model(path)


def test_damaged_files_are_corrupt_or_unsupported(tmp_path: Path) -> None:
    """Any byte of the head changed, and any end cut off."""
    small = replace(Network("llama", layers=1), tensors={})
    whole = write(tmp_path / "m.gguf", small.metadata, {"a": ("F32", (2, 2), bytes(16))}).read_bytes()
    rng = np.random.default_rng(0)
    for n in range(300):
        data = bytearray(whole)
        at = int(rng.integers(4, len(data)))
        if n % 3:
            data[at] = int(rng.integers(0, 256))
        else:
            del data[at:]
        if n % 7 == 0:
            data[8:16] = struct.pack("<Q", int(rng.integers(1 << 63, dtype=np.uint64)))
        (tmp_path / "x.gguf").write_bytes(data)
        with pytest.raises((CorruptError, UnsupportedError)):
            read_model(tmp_path / "x.gguf")


def test_versions_and_formats_without_a_reader_are_unsupported(tmp_path: Path) -> None:
    network = NETWORKS["llama"]
    with pytest.raises(UnsupportedError, match=r"versions 2 and 3, .* got 1"):
        read_model(write(tmp_path / "v.gguf", network.metadata, {}, version=1))
    data = network.write(tmp_path / "m.gguf").read_bytes()
    at = data.index(b"token_embd.weight") + len("token_embd.weight") + 4 + 16
    (tmp_path / "t.gguf").write_bytes(data[:at] + struct.pack("<I", 16) + data[at + 4 :])
    with pytest.raises(AotError, match=r"tensor 'token_embd.weight': types F32, .* can be read, got type 16"):
        read_model(tmp_path / "t.gguf")
