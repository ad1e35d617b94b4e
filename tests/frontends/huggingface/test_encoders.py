"""Encoders of transformers as folders: vectors are PyTorch's in f64, pooled as sentence-transformers does."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from aot import compile_model
from aot.runtime.errors import CorruptError, UnsupportedError
from tests.archives import arrays_of
from tests.frontends.huggingface.folders import Array, weight, write

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


def pooled(hidden: Array, mask: Array, kind: str) -> Array:
    shown = mask[..., None] == 1
    if kind == "cls":
        return hidden[:, 0]
    return hidden.mean(1, where=shown) if kind == "mean" else np.where(shown, hidden, -np.inf).max(1)


@pytest.mark.parametrize("name", NAMES)
def test_vectors_are_those_of_pytorch(name: str, tmp_path: Path) -> None:
    inputs, hidden = network(name, tmp_path)
    found = compile_model(tmp_path)(inputs)["sentence_embedding"]
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
    found = compile_model(tmp_path)(inputs)["sentence_embedding"]
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


WRONG = {
    "a classifier": ({"architectures": ["BertForSequenceClassification"]}, UnsupportedError, "give vectors of tokens"),
    "relative positions": ({"position_embedding_type": "relative_key"}, UnsupportedError, "positions of type absolute"),
    "heads that do not divide": ({"num_attention_heads": 5}, CorruptError, "hidden_size is a multiple of 5 heads"),
    "fewer layers": ({"num_hidden_layers": 1}, UnsupportedError, "tensors of the encoder belong .* got 16 others"),
    "more layers": ({"num_hidden_layers": 3}, CorruptError, "has a tensor 'bert.encoder.layer.2"),
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
