"""A stateful decoder, as optimum-intel exports it, gives OpenVINO's numbers at every step of a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

from aot.compilation.driver import compile_model
from aot.ir.types import Array
from benchmarks.language.decoder import Llama, make

PLAIN = {  # OpenVINO keeps keys, values and weights as they are
    "INFERENCE_PRECISION_HINT": "f32",
    "KV_CACHE_PRECISION": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
}
LENGTHS = (5, 1, 1, 3)  # words of each step: a prompt, single words, several at once
CLOSE = 2e-5  # relative to the largest logit

Infer = Callable[[Mapping[str, Array]], Array]


def logits(infer: Infer, words: int) -> list[Array]:
    """Logits after each step of two texts, the second of which is padded; they are exchanged before the last step."""
    rng, kept, found = np.random.default_rng(1), 0, list[Array]()
    for length in LENGTHS:
        mask = np.ones((2, kept + length), np.int64)
        mask[1, :2] = 0
        last = length == LENGTHS[-1]
        feed = {
            "input_ids": rng.integers(0, words, (2, length)),
            "attention_mask": mask,
            "position_ids": np.broadcast_to(np.arange(kept, kept + length), (2, length)).astype(np.int64),
            "beam_idx": np.array([1, 0] if last else [0, 1], np.int32),
        }
        found.append(np.array(infer(feed)))
        kept += length
    return found


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["f32", "u4"])
def test_steps_of_a_stateful_decoder_are_those_of_openvino(weights: str, tmp_path: Path) -> None:
    config = Llama(layers=1, width=64, heads=4, kept_heads=2, inner=128, words=50, weights=weights)
    model = make(tmp_path, config)
    theirs = ov.Core().compile_model(model, "CPU", PLAIN).create_infer_request()
    ours = compile_model(model).create_infer_request()
    wanted = logits(lambda feed: next(iter(theirs.infer(feed).values())), config.words)
    for got, want in zip(logits(lambda feed: next(iter(ours.infer(feed).values())), config.words), wanted, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=0, atol=CLOSE * float(np.abs(want).max()))
