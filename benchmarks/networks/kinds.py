"""Networks of many kinds that the tests have, for `benchmarks.platforms`: files, folders and graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from aot.frontends import read_model
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.options import CompileOptions
from aot.runtime.arrays.tensors import Array
from tests.frontends.gguf.networks import Network
from tests.frontends.huggingface import test_encoders as encoders
from tests.frontends.huggingface import test_transformers as decoders
from tests.frontends.onnx.tabular.test_tabular import EXPECTED, TABULAR
from tests.frontends.tf.tf_models import calls_of, unpacked
from tests.lowering.check import ints
from tests.lowering.numbers.short_networks import CASES
from tests.lowering.quantized import convolution, data, quantized, weights
from tests.passes.check import Make, Size, graph_of, values
from tests.speech import test_speaking as speaking

Kind = tuple[str, Callable[[], Graph | Path], Sequence[Array], CompileOptions]

TENSORFLOW = (
    *("convolutions", "unet", "detection", "speech", "streaming", "lstm", "gru", "masked"),
    *("checkpoint_recurrent", "transformer", "text_nested"),
)
ENCODERS = ("bert", "mpnet", "modernbert")
DECODERS = ("gpt2", "gemma3", "mixtral", "phi")
PIPELINES = ("forest", "lightgbm_three", "xgboost_values", "svc_rbf", "network")
GRAPHS = ("picture", "stem", "channels_last", "patches", "tokens", "channels", "windows")
VARIED = np.array([0.667, 0.8, 1.0], np.float32)  # of a voice: noise, noise of durations, speed


def bytes_picture(b: Builder, x: OutPort) -> OutPort:
    """Return convolutions of bytes with strides 1 and 2, and a product."""
    y = b.Relu(convolution(b, quantized(b, x), 32))
    y = b.Relu(convolution(b, quantized(b, y), 48, stride=2, seed=1))
    y = b.ReduceMean(y, ints(b, 2, 3), keep_dims=False)
    return b.MatMul(quantized(b, y), weights(b, 20, 48), transpose_b=True)


def bytes_attention(b: Builder, x: OutPort) -> OutPort:
    """Return attention whose projections are products of bytes."""
    q, k, v = (b.MatMul(quantized(b, x), weights(b, 64, 64, seed=n), transpose_b=True) for n in range(3))
    y = b.MatMul(b.Softmax(b.Multiply(b.MatMul(q, k, transpose_b=True), 0.02), axis=-1), v)
    return b.Add(b.MatMul(quantized(b, y), weights(b, 64, 64, seed=3), transpose_b=True), x)


def _built(make: Make, shape: Sequence[Size]) -> Callable[[], Graph]:
    return lambda: graph_of(make, shape)


def kinds(folder: Path) -> Iterator[Kind]:
    """Yield names, makers, inputs, which language models have none of, and options; files go into `folder`."""
    plain = CompileOptions()
    for name in GRAPHS:
        make, shape = CASES[name]
        yield f"{name} (graph)", _built(make, shape), values(shape), plain
    make, shape = CASES["attention"]
    yield "attention, f16", _built(make, shape), values(shape), CompileOptions(precision="f16")
    for name, make, shape in (
        ("a picture, int8", bytes_picture, (1, 16, 15, 13)),
        ("attention, int8", bytes_attention, (1, 21, 64)),
    ):
        yield name, _built(make, shape), [data(*shape)], plain
    for name in TENSORFLOW:
        path = unpacked(name, folder)
        given = calls_of(name)[0][0]
        order = [p.name for p in read_model(path).parameters]
        yield f"{name} (TensorFlow)", lambda path=path: path, [given[key] for key in order], plain
    for name in PIPELINES:
        path = TABULAR / f"{name}.onnx"
        yield f"{name} (tables)", lambda path=path: path, [EXPECTED[f"{name}.x"]], plain
    for name in ENCODERS:
        path = folder / name
        inputs, _ = encoders.network(name, path)
        yield name, lambda path=path: path, list(inputs.values()), plain
    path = speaking.network(folder / "voice", "one")
    yield "VITS", lambda path=path: path, [speaking.FOUND["ids"], VARIED], plain
    for name in DECODERS:
        path, _, _ = decoders.network(name, folder)
        yield f"{name}, tokens", lambda path=path: path, (), plain
    for name, network in (("qwen3", Network("qwen3", "Q8_0")), ("llama", Network("llama", "Q4_K"))):
        path = network.write(folder / f"{name}.gguf")
        yield f"{name} {network.kind}, tokens", lambda path=path: path, (), plain
