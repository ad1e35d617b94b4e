"""Networks of transformers as folders: 64 greedy tokens are PyTorch's, and logits those that it has in f64."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from aot import compile_model
from aot.frontends import read_model
from aot.runtime import Generator
from aot.text.library_texts import CONTEXT_LENGTH, FOLDER
from tests.archives import arrays_of
from tests.frontends.huggingface.folders import Array, weight, write

MODELS = Path(__file__).with_name("models")
PROMPT, EVERY = 5, 8
CLOSE = 1e-5  # of the largest logit
NAMES = sorted(path.stem for path in MODELS.glob("*.npz"))


def network(name: str, tmp_path: Path) -> tuple[Path, list[int], Array]:
    """Return the folder of a network, tokens, and logits of each eighth of them."""
    found = arrays_of(MODELS / f"{name}.npz")
    facts = json.loads(str(found["facts"]))
    tensors = {key: weight(key, shape, facts["around"]) for key, shape in facts["shapes"].items()}
    return write(tmp_path / name, facts["config"], tensors), found["tokens"].tolist(), found["logits"]


@pytest.mark.parametrize("name", NAMES)
def test_tokens_and_logits_are_those_of_pytorch(name: str, tmp_path: Path) -> None:
    folder, tokens, logits = network(name, tmp_path)
    model = compile_model(folder, threads=1)
    assert Generator(model).generate(tokens[:PROMPT], 64) == tokens[PROMPT:]
    one = Generator(model)
    for n, token in enumerate(tokens):
        got = one.feed([token])
        if n % EVERY == 0:
            np.testing.assert_allclose(got, logits[n // EVERY], rtol=0, atol=CLOSE * np.abs(logits).max())


def test_the_context_length_has_another_name_in_gpt2(tmp_path: Path) -> None:
    folder, _, _ = network("gpt2", tmp_path)
    texts = read_model(folder).rt_info[FOLDER]
    assert isinstance(texts, dict) and texts[CONTEXT_LENGTH] == str(
        json.loads((folder / "config.json").read_text())["n_positions"]
    )
