"""Encoders of transformers as folders: vectors are PyTorch's in f64, pooled as sentence-transformers does."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from typer.testing import CliRunner

from aot import compile_model, stages
from aot.cli import app
from aot.runtime import load
from aot.runtime.errors import CorruptError, UnsupportedError
from tests.archives import arrays_of
from tests.frontends.huggingface.folders import Array, weight, write
from tests.inferred import results_of

ENCODERS = Path(__file__).with_name("encoders")
CLOSE = 1e-5  # of the largest number
NAMES = sorted(path.stem for path in ENCODERS.glob("*.npz"))
POOLING = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens", "max": "pooling_mode_max_tokens"}


def network(name: str, folder: Path, **more: object) -> tuple[dict[str, Array], Array]:
    """Write the folder of a network; return its inputs and PyTorch's vectors of tokens."""
    found = arrays_of(ENCODERS / f"{name}.npz")
    facts = json.loads(str(found["facts"]))
    write(folder, facts["config"] | more, {key: weight(key, shape, 1.0) for key, shape in facts["shapes"].items()})
    return {"input_ids": found["ids"], "attention_mask": found["mask"]}, found["hidden"]


def add_modules(folder: Path, *kinds: str, **pooling: object) -> None:
    places = {"Transformer": "", "Pooling": "1_Pooling"}
    named = [{"type": f"sentence_transformers.models.{k}", "path": places.get(k, f"2_{k}")} for k in kinds]
    (folder / "modules.json").write_text(json.dumps(named))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))


def add_words(folder: Path) -> None:
    """Add a tokenizer of words w0 to w63, which cuts and fills up texts otherwise than the network wants it."""
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{n}": n for n in range(64)}, unk_token="w0"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    inner.post_processor = tokenizers.processors.TemplateProcessing("w2 $A w3", special_tokens=[("w2", 2), ("w3", 3)])
    inner.enable_truncation(100)
    inner.enable_padding(length=100, pad_id=1, pad_token="w1")
    inner.save(str(folder / "tokenizer.json"))


def library(folder: Path) -> Path:
    """Compile an encoder with a tokenizer, which sees 12 tokens."""
    network("mpnet", folder / "m")
    add_words(folder / "m")
    (folder / "m" / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 12, "do_lower_case": False}))
    compile_model(folder / "m").export_model(folder / "m.so")
    return folder / "m.so"


def pooled(hidden: Array, mask: Array, kind: str) -> Array:
    shown = mask[..., None] == 1
    if kind == "cls":
        return hidden[:, 0]
    return hidden.mean(1, where=shown) if kind == "mean" else np.where(shown, hidden, -np.inf).max(1)


def vectors(folder: Path, inputs: dict[str, Array]) -> Array:
    """Return the results of a network, computed by the references of the opset."""
    graph = stages(folder).optimized
    return results_of(graph, [inputs[node.name] for node in graph.parameters])[0]


@pytest.mark.parametrize("name", NAMES)
def test_vectors_are_those_of_pytorch(name: str, tmp_path: Path) -> None:
    """The tests below compile two of the architectures."""
    inputs, hidden = network(name, tmp_path)
    found = vectors(tmp_path, inputs)
    wanted = pooled(hidden, inputs["attention_mask"], "mean")
    np.testing.assert_allclose(found, wanted, rtol=0, atol=CLOSE * np.abs(wanted).max())


@pytest.mark.parametrize(
    ("kinds", "normalised"), [(("cls",), True), (("mean",), True), (("cls", "max", "mean"), False)]
)
def test_modules_say_what_becomes_of_vectors(kinds: tuple[str, ...], normalised: bool, tmp_path: Path) -> None:
    inputs, hidden = network("distilbert", tmp_path)
    add_modules(
        tmp_path,
        *("Transformer", "Pooling", "Normalize")[: 3 if normalised else 2],
        **{key: kind in kinds for kind, key in POOLING.items()},
        word_embedding_dimension=32,
    )
    found = vectors(tmp_path, inputs)
    wanted = np.concatenate([pooled(hidden, inputs["attention_mask"], kind) for kind in kinds], -1)
    if normalised:
        wanted /= np.linalg.norm(wanted, axis=-1, keepdims=True)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=CLOSE * np.abs(wanted).max())


def test_names_of_the_first_bert_and_its_heads_change_nothing(tmp_path: Path) -> None:
    inputs, hidden = network("bert", tmp_path)
    facts = json.loads(str(arrays_of(ENCODERS / "bert.npz")["facts"]))
    older = {
        f"bert.{key}".replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): weight(key, shape, 1.0)
        for key, shape in facts["shapes"].items()
    }
    config = facts["config"] | {"architectures": ["BertForMaskedLM"]}
    write(tmp_path, config, older | {"cls.predictions.bias": np.zeros(64, np.float32)})
    wanted = pooled(hidden, inputs["attention_mask"], "mean")
    found = compile_model(tmp_path)(inputs)["sentence_embedding"]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=CLOSE * np.abs(wanted).max())


def test_texts_become_vectors(tmp_path: Path) -> None:
    """None is filled up, and one that is too long keeps its last mark."""
    path = library(tmp_path)
    texts = ["w5 w40", "w7 w9", " ".join(f"w{n}" for n in range(10, 40)), "w8"]
    told = CliRunner().invoke(app, ["embed", str(path), *texts])
    assert told.exit_code == 0, told.output
    in_memory = CliRunner().invoke(app, ["embed", str(tmp_path / "m"), *texts])
    assert in_memory.stdout == told.stdout
    model = load(path)
    for line, ids in zip(
        told.stdout.splitlines(), [[2, 5, 40, 3], [2, 7, 9, 3], [2, *range(10, 20), 3], [2, 8, 3]], strict=True
    ):
        inputs = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)), np.int64)}
        assert np.array_equal(np.array(json.loads(line), np.float32), model(inputs)[0][0])


def test_other_libraries_and_settings_are_refused(tmp_path: Path) -> None:
    network("bert", tmp_path / "m")
    compile_model(tmp_path / "m").export_model(tmp_path / "m.so")
    assert "got a library without one" in CliRunner().invoke(app, ["embed", str(tmp_path / "m.so"), "w5"]).output
    add_words(tmp_path / "m")
    for name, field in (
        ("sentence_bert_config", "do_lower_case"),
        ("config_sentence_transformers", "default_prompt_name"),
    ):
        (tmp_path / "m" / f"{name}.json").write_text(json.dumps({field: True}))
        with pytest.raises(UnsupportedError, match=field):
            compile_model(tmp_path / "m")
        (tmp_path / "m" / f"{name}.json").unlink()


WRONG = {
    "another head": (
        {"architectures": ["BertForTokenClassification"]},
        UnsupportedError,
        "give vectors of tokens",
    ),
    "relative positions": ({"position_embedding_type": "relative_key"}, UnsupportedError, "positions of type absolute"),
    "heads that do not divide": ({"num_attention_heads": 5}, CorruptError, "hidden_size is a multiple of 5 heads"),
    "fewer layers": ({"num_hidden_layers": 1}, UnsupportedError, "tensors of the encoder belong .* got 16 others"),
    "more layers": ({"num_hidden_layers": 3}, CorruptError, "must have a tensor 'bert.encoder.layer.2"),
}


@pytest.mark.parametrize("case", WRONG)
def test_other_networks_are_refused(case: str, tmp_path: Path) -> None:
    more, error, text = WRONG[case]
    network("bert", tmp_path, **more)
    with pytest.raises(error, match=text):
        compile_model(tmp_path)


@pytest.mark.parametrize(
    ("kinds", "pooling", "text"),
    [
        (("Transformer", "Pooling", "Dense"), {"pooling_mode_mean_tokens": True}, "Normalize can be read, got Dense"),
        (("Transformer", "Pooling"), {"pooling_mode_lasttoken": True}, "can be read, got pooling_mode_lasttoken"),
    ],
)
def test_other_modules_are_refused(kinds: tuple[str, ...], pooling: dict[str, bool], text: str, tmp_path: Path) -> None:
    network("bert", tmp_path)
    add_modules(tmp_path, *kinds, **pooling)
    with pytest.raises(UnsupportedError, match=text):
        compile_model(tmp_path)
