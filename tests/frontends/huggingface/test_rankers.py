"""Encoders with a head as folders: scores are PyTorch's in f64, of pairs as the tokenizer's template joins them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from typer.testing import CliRunner

from aot import compile_model
from aot.cli import app
from aot.runtime import load
from aot.runtime.errors import CorruptError, UnsupportedError
from aot.runtime.model import CompiledModel
from aot.text.ranking import scores_of
from aot.text.tokenizers.tokenizer import read_tokenizer
from tests.archives import arrays_of
from tests.frontends.huggingface.folders import Array, weight, write
from tests.frontends.huggingface.test_encoders import add_modules

RANKERS = Path(__file__).with_name("rankers")
CLOSE = 1e-4
SIGMOID = {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"}}
OLDER: dict[str, object] = {"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"}
MORE: dict[str, dict[str, object]] = {"modernbert": OLDER, "distilbert": {**SIGMOID}}
BOUNDED = ("bert", "distilbert")  # one label by default, two by config.json


def found_of(name: str) -> tuple[dict[str, Any], dict[str, Array], Array]:
    """Return the facts of a network, its inputs and PyTorch's logits."""
    found = arrays_of(RANKERS / f"{name}.npz")
    inputs = {key: x for key, x in found.items() if key not in ("facts", "logits")}
    return json.loads(str(found["facts"])), inputs, found["logits"]


def network(name: str, folder: Path, **more: object) -> None:
    """Write the folder of a network."""
    facts = found_of(name)[0]
    write(folder, facts["config"] | more, {key: weight(key, shape, 1.0) for key, shape in facts["shapes"].items()})


def add_pairs(folder: Path) -> None:
    """Add a tokenizer of words w0 to w63, which joins two texts and gives the second one type 1."""
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{n}": n for n in range(64)}, unk_token="w0"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    inner.post_processor = tokenizers.processors.TemplateProcessing(
        "w2 $A w3", "w2 $A w3 $B:1 w3:1", special_tokens=[("w2", 2), ("w3", 3)]
    )
    inner.save(str(folder / "tokenizer.json"))


def library(folder: Path, name: str = "bert", **more: object) -> Path:
    """Compile an encoder with a head and a tokenizer, which sees 12 tokens."""
    network(name, folder / "m", **more)
    add_pairs(folder / "m")
    (folder / "m" / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 12}))
    compile_model(folder / "m").export_model(folder / "m.so")
    return folder / "m.so"


def check(model: CompiledModel, name: str) -> None:
    """Compare scores with PyTorch's logits, or the sigmoids of these."""
    inputs, logits = found_of(name)[1:]
    wanted = 1 / (1 + np.exp(-logits)) if name in BOUNDED else logits
    np.testing.assert_allclose(model(inputs)["scores"], wanted, rtol=0, atol=CLOSE)


@pytest.mark.parametrize("name", MORE)
def test_scores_are_those_of_pytorch(name: str, tmp_path: Path) -> None:
    network(name, tmp_path, **MORE[name])
    check(compile_model(tmp_path), name)


def test_pairs_of_texts_are_ranked(tmp_path: Path) -> None:
    """Both texts of a pair that is too long are cut."""
    path = library(tmp_path)
    texts = ["w7", " ".join(f"w{n}" for n in range(10, 40)), "w9 w8", "w7"]
    model = load(path)
    check(model, "bert")
    rows = [[7], list(range(10, 17)), [9, 8], [7]]
    wanted: list[float] = []
    for row in rows:
        ids, types = [2, 5, 40, 3, *row, 3][:12], [0] * 4 + [1] * (len(row) + 1)
        given = {"input_ids": [ids], "attention_mask": [[1] * len(ids)], "token_type_ids": [types]}
        wanted.append(float(str(model({key: np.array(x) for key, x in given.items()})[0][0, 0])))
    told = CliRunner().invoke(app, ["rerank", str(path), "w5 w40", *texts, "--json"])
    assert told.exit_code == 0, told.output
    found: dict[str, Any] = json.loads(told.stdout)
    order = sorted(range(4), key=lambda n: -wanted[n])
    assert [(one["index"], one["relevance_score"]) for one in found["results"]] == [(n, wanted[n]) for n in order]
    shown = CliRunner().invoke(app, ["rerank", str(path), "w5 w40", *texts]).stdout.splitlines()
    assert shown == [f"{wanted[n]:.6f}  {texts[n]}" for n in order]
    alike = CliRunner().invoke(app, ["rerank", str(tmp_path / "m"), "w5 w40", *texts])
    assert alike.stdout.splitlines() == shown, alike.output  # the folder, compiled in memory
    for command, text in (("generate", "aot rerank"), ("embed", "must be an encoder")):
        refused = CliRunner().invoke(app, [command, str(path), "w5"])
        assert refused.exit_code == 2 and text in refused.stderr


def test_a_classifier_has_scores_by_label(tmp_path: Path) -> None:
    path = library(tmp_path, "roberta", id2label={"0": "no", "1": "maybe", "2": "yes"})
    model = load(path)
    check(model, "roberta")
    told = CliRunner().invoke(app, ["rerank", str(path), "w5", "w7", "--json"])
    found: dict[str, Any] = json.loads(told.stdout)["results"][0]
    assert list(found["scores"]) == ["no", "maybe", "yes"]
    pair, alone = scores_of(model, read_tokenizer(path), [("w5", "w7"), ("w5", None)])
    assert list(found["scores"].values()) == [float(str(x)) for x in pair] and not np.array_equal(pair, alone)


WRONG: dict[str, tuple[dict[str, object], type[Exception], str]] = {
    "names with a gap": ({"id2label": {"0": "a", "2": "b"}}, CorruptError, "id2label is a name for each number from 0"),
    "more names": ({"id2label": {"0": "a", "1": "b"}}, CorruptError, "'classifier.weight' must be"),
    "another function": ({"sentence_transformers": {"activation_fn": "a.Softmax"}}, UnsupportedError, "got Softmax"),
}


@pytest.mark.parametrize("case", WRONG)
def test_other_heads_are_refused(case: str, tmp_path: Path) -> None:
    more, error, text = WRONG[case]
    network("bert", tmp_path, **more)
    with pytest.raises(error, match=text):
        compile_model(tmp_path)


def test_pooling_beside_a_head_is_refused(tmp_path: Path) -> None:
    network("bert", tmp_path)
    add_modules(tmp_path, "Transformer", "Pooling", pooling_mode_cls_token=True)
    with pytest.raises(UnsupportedError, match="classifiers without modules of their own"):
        compile_model(tmp_path)
