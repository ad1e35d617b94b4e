"""Folders of Hugging Face: parts, types of weights, texts that a library keeps, and files that are damaged."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from typer.testing import CliRunner

from aot import compile_model
from aot.cli import app
from aot.frontends import read_model
from aot.frontends.huggingface.container import INDEX, read_file_tensors
from aot.runtime import Generator, load
from aot.runtime.errors import AotError, CorruptError, UnsupportedError
from aot.text.tokenizers.tokenizer import read_tokenizer
from tests.frontends.gguf.references import logits_by_references
from tests.frontends.huggingface.folders import Array, safetensors, weight, write

WORDS, WIDTH, INNER = 48, 32, 40
CONFIG: Mapping[str, object] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": WORDS,
    "hidden_size": WIDTH,
    "intermediate_size": INNER,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 128,
    "eos_token_id": 2,
}
IDS = [5, 1, 40, 7]


def tensors() -> dict[str, Array]:
    shapes: dict[str, tuple[int, ...]] = {f"self_attn.{k}_proj.weight": (WIDTH, WIDTH) for k in "qkvo"}
    shapes |= {f"mlp.{k}_proj.weight": (INNER, WIDTH) for k in ("gate", "up")} | {
        "mlp.down_proj.weight": (WIDTH, INNER)
    }
    shapes |= {f"{k}_layernorm.weight": (WIDTH,) for k in ("input", "post_attention")}
    named = {f"model.layers.0.{k}": shape for k, shape in shapes.items()}
    named |= {
        "model.embed_tokens.weight": (WORDS, WIDTH),
        "model.norm.weight": (WIDTH,),
        "lm_head.weight": (WORDS, WIDTH),
    }
    return {name: weight(name, shape, 1.0) for name, shape in named.items()}


def logits(folder: Path) -> Array:
    return logits_by_references(folder, IDS, 3)


def test_parts_and_types_of_weights_change_nothing(tmp_path: Path) -> None:
    """All types hold the weights. A head that the configuration ties is not read."""
    wanted = logits(write(tmp_path / "f32", CONFIG, tensors()))
    assert np.array_equal(logits(write(tmp_path / "f16", CONFIG, tensors(), "F16")), wanted)
    parts = tmp_path / "parts"
    (write(parts, CONFIG, {}) / "model.safetensors").unlink()
    names = [list(tensors())[::2], list(tensors())[1::2]]
    for n, part in enumerate(names):
        (parts / f"{n}.safetensors").write_bytes(safetensors({k: tensors()[k] for k in part}, "BF16"))
    places = {k: f"{n}.safetensors" for n, part in enumerate(names) for k in part}
    (parts / INDEX).write_text(json.dumps({"weight_map": places}))
    assert np.array_equal(logits(parts), wanted)
    head = tensors() | {"lm_head.weight": tensors()["model.embed_tokens.weight"]}
    tied = logits(write(tmp_path / "same", CONFIG, head))
    assert np.array_equal(logits(write(tmp_path / "tied", {**CONFIG, "tie_word_embeddings": True}, tensors())), tied)
    assert not np.array_equal(tied, wanted)


def test_the_last_logits_are_given_unless_all_are_asked_for(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", CONFIG, tensors())
    last, every = (compile_model(folder, last_logits=asked, threads=1) for asked in (None, False))
    assert (Generator(last).gives_all_logits, Generator(every).gives_all_logits) == (False, True)
    assert np.array_equal(Generator(every).feed_all(IDS)[-1], Generator(last).feed(IDS))


def test_a_library_keeps_the_texts_of_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    words = {"<unk>": 0, "<s>": 1, "</s>": 2, **{f"w{n}": n for n in range(3, WORDS)}}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    inner.add_special_tokens(["<s>"])
    inner.post_processor = tokenizers.processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)])
    folder = write(tmp_path / "m-1.5", CONFIG, tensors())
    inner.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>", "eos_token": {"content": "</s>"}}))
    (folder / "chat_template.jinja").write_text("{{ bos_token }} {{ messages[0]['content'] }}")
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [9, 2]}))
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(app, ["compile", str(folder), "--quiet"])
    assert told.exit_code == 0, told.output
    found = read_tokenizer(tmp_path / "m-1.5.so")
    assert (found.encode("w5 w1 w40"), found.decode([5, 40]), found.stop) == ([1, 5, 0, 40], "w5 w40", (9, 2))
    assert (found.context, found.marks) == (128, {"bos_token": "<s>", "eos_token": "</s>"})
    asked = found.chat_template().render([{"role": "user", "content": "w7"}])
    assert (asked, found.begin(asked)) == ("<s> w7", [1, 7])  # the template's token is not added again
    wanted = Generator(load(tmp_path / "m-1.5.so")).generate([1, 5, 40], 4, stop=[9, 2])
    for model in (tmp_path / "m-1.5.so", folder):  # a folder is compiled in memory, and ends at its own tokens
        told = CliRunner().invoke(app, ["generate", str(model), "w5 w40", "--tokens", "4", "--quiet"])
        assert told.stdout.split() == [f"w{n}" for n in wanted if n not in (9, 2)], told.output


WRONG: Mapping[str, tuple[Mapping[str, object], type[AotError], str]] = {
    "another type": ({"model_type": "mamba"}, UnsupportedError, "of type llama, .* can be read, got mamba"),
    "no head": (
        {"architectures": ["LlamaModel"]},
        UnsupportedError,
        "give logits of words can be read, got LlamaModel",
    ),
    "another packing": (
        {"quantization_config": {"quant_method": "bitsandbytes"}},
        UnsupportedError,
        "gptq, awq .* can be read, got bitsandbytes",
    ),
    "a text for a number": ({"hidden_size": "wide"}, CorruptError, "hidden_size is an integer"),
    "no layers": ({"num_hidden_layers": 0}, CorruptError, "num_hidden_layers is an integer from 1"),
    "more layers": (
        {"num_hidden_layers": 2},
        CorruptError,
        "must have a tensor 'model.layers.1.input_layernorm.weight'",
    ),
    "heads that do not divide": (
        {"num_key_value_heads": 3, "head_dim": 16},
        CorruptError,
        "a multiple of that of keys and values, got 2 and 3",
    ),
    "an odd share of a head": ({"partial_rotary_factor": 0.2}, CorruptError, "rotated elements .* got 3 of 16"),
    "more than a head": ({"partial_rotary_factor": 1e308}, CorruptError, "partial_rotary_factor is above 0, at most"),
    "a number beyond floats": ({"rms_norm_eps": 10**400}, CorruptError, "rms_norm_eps is a positive number"),
    "another width": (
        {"intermediate_size": 41},
        CorruptError,
        r"'model.layers.0.mlp.up_proj.weight' must be \[41, 32\]",
    ),
    "another scaling": (
        {"rope_scaling": {"rope_type": "dynamic"}},
        UnsupportedError,
        "default, linear, llama3, yarn, longrope can be read, got dynamic",
    ),
    "a base of YaRN": (
        {"rope_theta": 1, "rope_scaling": {"rope_type": "yarn", "factor": 2.0}},
        CorruptError,
        "rope_theta is more than 1, got 1.0",
    ),
    "few factors": (
        {"rope_scaling": {"rope_type": "longrope", "short_factor": [1.0, 0]}},
        CorruptError,
        "short_factor is a list of 8 positive numbers",
    ),
    "slopes of positions": ({"model_type": "falcon", "alibi": True}, UnsupportedError, "with rotations .* got alibi"),
    "groups of experts": (
        {"model_type": "deepseek_v2", "topk_method": "group_limited_greedy"},
        UnsupportedError,
        "topk_method greedy can be read, got group_limited_greedy",
    ),
    "a scaling of layers with windows": (
        {"model_type": "mistral", "sliding_window": 8, "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
        UnsupportedError,
        "sliding_attention without a scaling of positions can be read, got linear",
    ),
    "another scaling of layers with windows": (
        {
            "model_type": "mistral",
            "sliding_window": 8,
            "rope_parameters": {"full_attention": {"rope_type": "default"}, "sliding_attention": {"rope_type": "yarn"}},
        },
        UnsupportedError,
        "of all layers, or of none, can be read, got default beside yarn of sliding_attention",
    ),
    "a scaling of some layers": (
        {
            "model_type": "mistral",
            "sliding_window": 8,
            "rope_parameters": {"full_attention": {"rope_type": "llama3"}, "sliding_attention": {}},
        },
        UnsupportedError,
        "of all layers, or of none, can be read, got llama3 beside default",
    ),
    "another function": ({"hidden_act": "relu2"}, UnsupportedError, "functions silu, .* got relu2"),
    "a function in a list": ({"hidden_act": ["relu"]}, UnsupportedError, r"functions silu, .* got \['relu'\]"),
    "kinds of layers": ({"layer_types": ["linear_attention"]}, CorruptError, "layer_types is sliding_attention or"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mismatched_configurations_are_refused(name: str, tmp_path: Path) -> None:
    changed, error, text = WRONG[name]
    with pytest.raises(error, match=text):
        read_model(write(tmp_path / "m", {**CONFIG, **changed}, tensors()))


def test_tensors_of_no_network_are_named(tmp_path: Path) -> None:
    others = tensors() | {"model.layers.0.mlp.experts.weight": np.zeros((2, 2), np.float32)}
    with pytest.raises(UnsupportedError, match=r"got 1 others: 'model.layers.0.mlp.experts.weight'"):
        read_model(write(tmp_path / "m", CONFIG, others))


@pytest.mark.parametrize(
    ("index", "text"),
    [
        ({"weight_map": []}, "weight_map must be an object, got list"),
        ({"weight_map": {"a": "../x.safetensors"}}, "files must be names of the folder"),
        ({"weight_map": {"a": "x.safetensors"}}, "each file must lie beside it"),
        ({"weight_map": {"a": "model.safetensors"}}, "each tensor must lie in its file, got 'a'"),
    ],
)
def test_an_index_that_lies_is_corrupt(index: object, text: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "m", CONFIG, tensors())
    (folder / INDEX).write_text(json.dumps(index))
    with pytest.raises(CorruptError, match=text):
        read_model(folder)


ANYTHING: Sequence[Any] = (
    -1,
    0,
    3,
    1 << 40,
    10**400,
    1e308,
    float("nan"),
    None,
    True,
    "",
    "yarn",
    "mxfp4",
    [],
    ["x"],
    {},
    {"a": 1},
)


def test_any_value_in_a_configuration_is_read_or_refused(tmp_path: Path) -> None:
    """Also those inside of objects; a third of all values for each."""
    scaling = {"rope_type": "longrope", "short_factor": [1.0] * 8, "long_factor": [1.0] * 8, "factor": 2.0}
    weights = {"num_bits": 4, "type": "int"}
    groups = {"config_groups": {"group_0": {"weights": weights}}, "format": "pack-quantized"}
    packing = {"quant_method": "compressed-tensors", **groups}
    whole: dict[str, Any] = {**CONFIG, "rope_scaling": scaling, "quantization_config": packing, "layer_types": None}
    folder = write(tmp_path / "m", whole, tensors())

    def places(tree: dict[str, Any], at: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
        inner = {key: cast("dict[str, Any]", v) for key, v in tree.items() if isinstance(v, dict)}
        return [(*at, key) for key in tree] + [p for key, v in inner.items() for p in places(v, (*at, key))]

    refused = 0
    for n, place in enumerate(places(whole)):
        for value in ANYTHING[n % 3 :: 3]:
            changed = copy.deepcopy(whole)
            inner = changed
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = value
            (folder / "config.json").write_text(json.dumps(changed))
            try:
                read_model(folder)
            except (CorruptError, UnsupportedError):
                refused += 1
    assert refused > 40


def raw(header: object, body: bytes = bytes(16)) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def entry(dtype: object = "F32", shape: object = (2, 2), offsets: object = (0, 16)) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


DAMAGED = {
    "nothing": (b"", "the header must lie in the file"),
    "a header beyond the end": ((1 << 62).to_bytes(8, "little") + b"{}", "the header must lie in the file"),
    "no JSON": (raw({})[:8] + b"{]", "must be JSON"),
    "a deep JSON": ((200_000).to_bytes(8, "little") + b"[" * 200_000, "must be JSON"),
    "a list": (raw([]), "must be an object"),
    "no entry": (raw({"a": 3}), "has a type, a shape and two offsets"),
    "a huge size": (raw({"a": entry(shape=[1 << 62, 4])}), "has a type, a shape and two offsets"),
    "a list for a type": (raw({"a": entry(dtype=["F32"])}), "has a type, a shape and two offsets"),
    "a negative offset": (raw({"a": entry(offsets=[-16, 0])}), "has a type, a shape and two offsets"),
    "offsets the other way": (raw({"a": entry(offsets=[16, 0])}), "must begin before its end"),
    "offsets beyond the end": (raw({"a": entry(offsets=[16, 32])}), "fills its bytes in a file of 16"),
    "fewer bytes": (raw({"a": entry(offsets=[0, 8])}), "fills its bytes"),
    "tensors that overlap": (raw({"a": entry(), "b": entry(shape=[2], offsets=[8, 16])}), "must not overlap"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_headers_are_corrupt(name: str, tmp_path: Path) -> None:
    data, text = DAMAGED[name]
    (tmp_path / "m.safetensors").write_bytes(data)
    with pytest.raises(CorruptError, match=text):
        read_file_tensors(tmp_path / "m.safetensors")


def test_changed_bytes_give_tensors_or_an_error(tmp_path: Path) -> None:
    """Any byte of the head changed, and any end cut off: what is read lies in the file."""
    whole, rng = safetensors({"a": np.ones((4, 2), np.float32), "b": np.ones(3, np.float32)}), np.random.default_rng(0)
    for n in range(1000):
        data = bytearray(whole)
        at = int(rng.integers(0, len(data)))
        if n % 3:
            data[at] = int(rng.integers(0, 256))
        else:
            del data[at:]
        (tmp_path / "x.safetensors").write_bytes(data)
        try:
            found = read_file_tensors(tmp_path / "x.safetensors")
        except CorruptError:
            continue
        assert sum(len(t.raw) for t in found.values()) <= len(data)
