"""GroupQueryAttention of domain com.microsoft against ONNX Runtime, by the references of the opset and compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import aot
from tests.frontends.onnx.models import Array, Numbers, model, run, save
from tests.frontends.onnx.oracle import expected

pytestmark = pytest.mark.oracle
f32 = Numbers(23).f32
HEADS, GROUPS, SIZE, ROOM = 4, 2, 16, 12
NAMES = (
    "query",
    "key",
    "value",
    "past_key",
    "past_value",
    "seqlens_k",
    "total_sequence_length",
    "cos_cache",
    "sin_cache",
    "position_ids",
    "attention_bias",
    "head_sink",
)
OUTPUTS = ["y", "present_key", "present_value"]


def rows(batch: int, length: int, heads: int) -> Array:
    return f32(batch, length, heads * SIZE)


def given(batch: int, length: int, past: int, lengths: list[int], **more: Array) -> dict[str, Array]:
    """Inputs: `past` rows are held, and sequence b has `lengths[b]` keys with the new ones."""
    found = {
        "query": rows(batch, length, HEADS),
        "key": rows(batch, length, GROUPS),
        "value": rows(batch, length, GROUPS),
        "past_key": f32(batch, GROUPS, past, SIZE),
        "past_value": f32(batch, GROUPS, past, SIZE),
        "seqlens_k": np.array(lengths, np.int32) - 1,
        "total_sequence_length": np.array(max(lengths), np.int32),
    }
    return found | more


def packed(made: dict[str, Array]) -> dict[str, Array]:
    whole = np.concatenate([made.pop(n) for n in ("query", "key", "value")], 2)
    return made | {"query": whole}


def caches() -> dict[str, Array]:
    return {"cos_cache": f32(ROOM, SIZE // 2), "sin_cache": f32(ROOM, SIZE // 2)}


def network(inputs: dict[str, Array], attrs: dict[str, Any], dims: dict[str, tuple[Any, ...]]) -> onnx.ModelProto:
    """`dims`: the shapes of inputs whose sizes are not those of the arrays."""
    infos = {n: (x.dtype, dims[n]) if n in dims else x for n, x in inputs.items()}
    names = [n if n in inputs else "" for n in NAMES]
    node = helper.make_node(
        "GroupQueryAttention", names, OUTPUTS, domain="com.microsoft", num_heads=HEADS, kv_num_heads=GROUPS, **attrs
    )
    return model([node], infos, OUTPUTS, domain="com.microsoft")


CASES: dict[str, tuple[dict[str, Array], dict[str, Any]]] = {
    "prompt": (given(2, 5, 0, [5, 5]), {}),
    "prompt_without_past": ({k: v for k, v in given(1, 5, 0, [5]).items() if "past" not in k}, {}),
    "packed": (packed(given(1, 3, 4, [7])), {}),
    "step": (given(1, 1, 6, [7]), {"scale": 0.2}),
    "steps_of_other_lengths": (given(2, 1, 6, [7, 4]), {}),
    "room_for_more": (given(1, 2, 10, [6]), {}),
    "rotary": (given(2, 1, 6, [7, 4], **caches()), {"do_rotary": 1}),
    "rotary_prompt": (given(1, 5, 0, [5], **caches()), {"do_rotary": 1, "rotary_interleaved": 1}),
    "rotary_packed": (packed(given(1, 2, 4, [6], **caches())), {"do_rotary": 1}),
    "window": (given(1, 6, 3, [9]), {"local_window_size": 3}),
    "window_of_one_step": (given(2, 1, 8, [9, 3]), {"local_window_size": 4}),
    "capped": (given(1, 3, 4, [7]), {"softcap": 0.5}),
    "smooth": (given(1, 3, 4, [7]), {"smooth_softmax": 1}),
    "sinks": (given(1, 3, 4, [7], head_sink=f32(HEADS)), {}),
    "bias": (given(1, 3, 4, [7], attention_bias=f32(1, HEADS, 3, 7)), {"softcap": 0.7}),
}


def valid(inputs: dict[str, Array], outputs: list[Array]) -> list[Array]:
    """Clear the presents after the end of each sequence, where their values are unspecified."""
    y, *presents = (np.array(p) for p in outputs)
    for p in presents:
        for b, end in enumerate(inputs["seqlens_k"] + 1):
            p[b, :, end:] = 0
    return [y, *presents]


@pytest.mark.parametrize("name", CASES)
def test_results_equal_onnx_runtime(tmp_path: Path, name: str) -> None:
    inputs, attrs = CASES[name]
    path = save(tmp_path, network(inputs, attrs, {}))
    wanted = valid(inputs, expected(path, *inputs.values()))
    for found, right in zip(valid(inputs, run(path, *inputs.values())), wanted, strict=True):
        assert found.shape == right.shape
        np.testing.assert_allclose(found, right, rtol=2e-4, atol=2e-5)


def test_one_library_decodes_step_by_step(tmp_path: Path) -> None:
    """A prompt and two steps with sizes that only run time knows, in the past's own length and in a longer buffer."""
    first = given(1, 5, 0, [5], **caches())
    dims: dict[str, tuple[Any, ...]] = {n: ("batch", "length", first[n].shape[2]) for n in ("query", "key", "value")}
    dims |= dict.fromkeys(("past_key", "past_value"), ("batch", GROUPS, "past", SIZE))
    path = save(tmp_path, network(first, {"do_rotary": 1}, {**dims, "seqlens_k": ("batch",)}))
    compiled = aot.compile_model(path, threads=1)
    held = [first["past_key"], first["past_value"]]
    for length, total in ((5, 5), (1, 6), (1, 7)):
        feed = given(1, length, 0, [total]) | dict(zip(("past_key", "past_value"), held, strict=True))
        feed |= {n: first[n] for n in ("cos_cache", "sin_cache")}
        answer = compiled(feed)
        found = [np.asarray(answer[n]) for n in OUTPUTS]
        for p, right in zip(found, expected(path, *[feed[n] for n in first]), strict=True):
            np.testing.assert_allclose(p, right, rtol=2e-4, atol=2e-5)
        held = found[1:]
    long = given(1, 1, ROOM, [4]) | {n: first[n] for n in ("cos_cache", "sin_cache")}
    answer = compiled(long)
    found = valid(long, [np.asarray(answer[n]) for n in OUTPUTS])
    for p, right in zip(found, valid(long, expected(path, *[long[n] for n in first])), strict=True):
        np.testing.assert_allclose(p, right, rtol=2e-4, atol=2e-5)
