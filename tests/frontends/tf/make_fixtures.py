"""Writes `models/*.zip`: small models of TensorFlow with inputs and the results that TensorFlow computes for them.

    python tests/frontends/tf/make_fixtures.py [NAME ...]

Needs tensorflow 2.21, which the tests do not. A zip holds a SavedModel, a MetaGraph with its checkpoint or a graph, and
calls in order: `0/in_x.npy`, `0/out_y.npy`, `1/in_x.npy`, ... State lives from one call to the next.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}

import keras
import numpy as np
import tensorflow as tf
from keras import layers

v1 = tf.compat.v1
HERE = Path(__file__).parent / "models"
MAKERS: dict[str, Callable[[Path], list]] = {}
rng = np.random.default_rng(31)


def f32(*shape, low=None):
    return rng.normal(size=shape).astype(np.float32) if low is None else rng.uniform(low, 1, shape).astype(np.float32)


def maker(function):
    MAKERS[function.__name__] = function
    return function


def exported(folder, model, *calls):
    """The calls of a Keras model; each gives its one input."""
    model.export(folder, verbose=False)
    return answers(folder, *({model.inputs[0].name: x} for x in calls))


def saved(folder, module, function, *calls, **more):
    tf.saved_model.save(module, folder, {"serving_default": function, **more})
    return answers(folder, *calls)


def answers(folder, *calls):
    run = tf.saved_model.load(str(folder)).signatures["serving_default"]
    found = [run(**{k: tf.constant(v) for k, v in call.items()}) for call in calls]
    return [(call, {k: v.numpy() for k, v in out.items()}) for call, out in zip(calls, found, strict=True)]


def spec(dtype, *shape, name):
    return tf.TensorSpec(shape, dtype, name=name)


# ---- Keras


@maker
def convolutions(folder):
    x = keras.Input((16, 16, 3))
    y = layers.Conv2D(8, 3, padding="same", strides=2)(x)
    y = layers.ReLU(6.0)(layers.BatchNormalization()(y))
    y = layers.DepthwiseConv2D(3, padding="same")(y)
    y = layers.MaxPool2D()(y)
    y = layers.Dense(5, activation="softmax")(layers.GlobalAveragePooling2D()(y))
    return exported(folder, keras.Model(x, y), f32(2, 16, 16, 3))


@maker
def lstm(folder):
    first = layers.LSTM(16, return_sequences=True)
    model = keras.Sequential([keras.Input((20, 8)), first, layers.LSTM(12), layers.Dense(5, activation="softmax")])
    return exported(folder, model, f32(2, 20, 8))


@maker
def gru(folder):
    first = layers.GRU(16, return_sequences=True)
    model = keras.Sequential([keras.Input((None, 8)), first, layers.GRU(12, reset_after=False), layers.Dense(5)])
    return exported(folder, model, f32(2, 20, 8), f32(1, 3, 8))


@maker
def masked(folder):
    x = rng.integers(1, 50, (3, 9)).astype(np.float32)
    x[0, 6:] = x[1, 3:] = 0
    both = layers.Bidirectional(layers.LSTM(6, return_sequences=True))
    model = keras.Sequential([keras.Input((None,)), layers.Embedding(50, 8, mask_zero=True), both, layers.GRU(5)])
    return exported(folder, model, x)


class Two(layers.Layer):
    """A layer of two: names of their variables repeat in a file whose root is a module."""

    def __init__(self):
        super().__init__(name="two")
        self.first, self.second = layers.Dense(3), layers.Dense(2)

    def call(self, x):
        return self.second(self.first(x))


@maker
def module_layers(folder):
    two, x = Two(), f32(2, 4)
    two(x)
    for v in two.weights:
        v.assign(f32(*v.shape))
    module = tf.Module()
    module.two, module.f = two, tf.function(two.call, input_signature=[tf.TensorSpec([None, 4], name="x")])
    function = module.f.get_concrete_function()
    tf.saved_model.save(module, str(folder), signatures=function)
    return [({"x": x}, {"output_0": two(x).numpy()})]


@maker
def stateful(folder):
    """Layers that keep their states: of two sequences, though the file leaves their number open."""
    x = keras.Input(batch_shape=(2, 4, 6))
    y = layers.LSTM(5, stateful=True)(layers.GRU(5, stateful=True, return_sequences=True)(layers.Masking()(x)))
    given = [f32(2, 4, 6) for _ in range(3)]
    given[0][0, 2:] = given[1][1] = 0
    return exported(folder, keras.Model(x, y), *given)


@maker
def transformer(folder):
    ids = keras.Input((12,), dtype="int32")
    x = layers.Embedding(100, 16)(ids)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 8)(x, x))
    x = layers.LayerNormalization()(x + layers.Dense(16)(layers.Dense(32, activation="gelu")(x)))
    y = layers.Dense(4)(layers.GlobalAveragePooling1D()(x))
    return exported(folder, keras.Model(ids, y), rng.integers(0, 100, (2, 12)).astype(np.int32))


@maker
def unet(folder):
    def block(x, n):
        return layers.Conv2D(n, 3, padding="same", activation="relu")(x)

    x = keras.Input((32, 32, 3))
    a = block(x, 8)
    b = block(layers.MaxPool2D()(a), 16)
    c = block(layers.MaxPool2D()(b), 16)
    d = layers.Concatenate()([layers.Conv2DTranspose(16, 2, strides=2)(c), b])
    e = layers.Concatenate()([layers.UpSampling2D(interpolation="bilinear")(d), a])
    return exported(folder, keras.Model(x, layers.Conv2D(2, 1, activation="sigmoid")(e)), f32(1, 32, 32, 3))


# ---- functions


@maker
def loops(folder):
    m = tf.Module()
    m.w = tf.Variable(f32(4, 4) * 0.5)

    @tf.function(input_signature=[spec(tf.float32, None, 4, name="x"), spec(tf.int32, name="n")])
    def run(x, n):
        i, s = tf.constant(0), tf.zeros_like(x)
        while i < n:
            x = tf.tanh(x @ m.w)
            s += x
            i += 1
        r = s * 2.0 if tf.reduce_sum(s) > 0 else s - 1.0
        return {"s": s, "r": r, "i": i}

    return saved(folder, m, run, *({"x": f32(3, 4), "n": np.int32(n)} for n in (7, 0, 1)))


@maker
def lists(folder):
    @tf.function(input_signature=[spec(tf.float32, None, 3, name="x")])
    def run(x):
        n = tf.shape(x)[0]
        fixed = tf.TensorArray(tf.float32, size=n)
        growing = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=(3,))
        total = tf.zeros(3)
        for i in tf.range(n):
            total = total + x[i]
            fixed = fixed.write(i, total * 2.0)
            growing = growing.write(i, total - 1.0)
        maxima = tf.map_fn(tf.reduce_max, x)
        return {"a": fixed.stack(), "b": growing.stack(), "c": maxima, "d": tf.scan(lambda a, b: a * b, x)}

    return saved(folder, tf.Module(), run, {"x": f32(6, 3)}, {"x": f32(1, 3)})


@maker
def lists_in_branches(folder):
    @tf.function(input_signature=[spec(tf.float32, 3, 2, name="x"), spec(tf.bool, name="p")])
    def run(x, p):
        rows = tf.TensorArray(tf.float32, size=3)
        for i in tf.range(3):
            rows = rows.write(i, x[i] * 2.0) if p else rows.write(i, -x[i])
        return {"y": rows.stack()}

    return saved(folder, tf.Module(), run, *({"x": f32(3, 2), "p": np.bool_(p)} for p in (0, 1)))


@maker
def speech(folder):
    """Mel-frequency cepstral coefficients: Fourier transforms, and complex constants of a cosine transform."""

    @tf.function(input_signature=[spec(tf.float32, 1, 400, name="x")])
    def run(x):
        spectrum = tf.abs(tf.signal.stft(x, 64, 32))
        mel = tf.matmul(spectrum, tf.signal.linear_to_mel_weight_matrix(10, 33, 8000, 100.0, 3500.0))
        return {"y": tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(mel + 1e-6))[..., :5]}

    return saved(folder, tf.Module(), run, {"x": f32(1, 400)})


@maker
def streaming(folder):
    """A convolution over time with the last steps of its input, a recurrent state, and a count, kept between calls."""
    m = tf.Module()
    m.past = tf.Variable(tf.zeros((1, 2, 6)), name="past")
    m.state = tf.Variable(tf.zeros((1, 5)), name="state")
    m.count = tf.Variable(0, name="count")
    m.kernel, m.w, m.u = tf.Variable(f32(3, 6, 5)), tf.Variable(f32(5, 5) * 0.4), tf.Variable(f32(5, 5) * 0.4)

    @tf.function(input_signature=[spec(tf.float32, 1, None, 6, name="x")])
    def run(x):
        frames = tf.concat([m.past, x], 1)
        m.past.assign(frames[:, -2:])
        y = tf.nn.conv1d(frames, m.kernel, 1, "VALID")
        for t in tf.range(tf.shape(y)[1]):
            m.state.assign(tf.tanh(y[:, t] @ m.w + m.state @ m.u))
            m.count.assign_add(1)
        if m.count > 6:
            m.state.assign(m.state * 0.5)
        return {"y": m.state.read_value(), "n": m.count.read_value()}

    calls = [{"x": f32(1, n, 6)} for n in (3, 2, 4)]
    return saved(folder, m, run, *calls)


@maker
def cases(folder):
    m = tf.Module()
    m.v, m.calls = tf.Variable(2.0), tf.Variable(tf.zeros(3, tf.int32))

    def second(x):
        m.calls.scatter_nd_add([[1]], [1])
        return x * m.v

    @tf.function(input_signature=[spec(tf.int32, name="k"), spec(tf.float32, 3, name="x")])
    def run(k, x):
        y = tf.switch_case(k, [lambda: x + 1.0, lambda: second(x), lambda: tf.reverse(x, [0])])
        m.calls[2:].assign(m.calls[2:] + 5)
        return {"y": y, "calls": m.calls.read_value()}

    return saved(folder, m, run, *({"k": np.int32(k), "x": f32(3)} for k in (1, 0, 2, 7)))


@maker
def detection(folder):
    @tf.function(input_signature=[spec(tf.float32, 20, 4, name="boxes"), spec(tf.float32, 20, name="scores")])
    def run(boxes, scores):
        kept = tf.image.non_max_suppression(boxes, scores, 10, 0.5, 0.1)
        return {"boxes": tf.gather(boxes, kept), "scores": tf.gather(scores, kept)}

    boxes = f32(20, 4, low=0)
    boxes[:, 2:] += boxes[:, :2]
    return saved(folder, tf.Module(), run, {"boxes": boxes, "scores": f32(20, low=0)})


@maker
def table(folder):
    m = tf.Module()
    pairs = tf.lookup.KeyValueTensorInitializer(tf.constant([3, 5, 9], tf.int64), tf.constant([0.5, 1.5, 2.5]))
    m.table = tf.lookup.StaticHashTable(pairs, -1.0)

    @tf.function(input_signature=[spec(tf.int64, None, name="ids")])
    def run(ids):
        return {"y": m.table.lookup(ids)}

    return saved(folder, m, run, {"ids": np.array([9, 4, 3, 5, 9], np.int64)})


@maker
def signatures(folder):
    m = tf.Module()

    @tf.function(input_signature=[spec(tf.float32, 2, name="x")])
    def plus(x):
        return {"y": x + 1.0}

    @tf.function(input_signature=[spec(tf.float32, 2, name="x")])
    def times(x):
        return {"y": x * 3.0}

    return saved(folder, m, plus, {"x": f32(2)}, triple=times)


# ---- TensorFlow 1


def session(folder, build, calls, keep):
    """Calls of a graph of TensorFlow 1; `keep(session, folder, inputs, outputs)` writes it."""
    v1.disable_control_flow_v2()
    with tf.Graph().as_default(), v1.Session() as s:
        outputs = {k: tf.identity(v, name=k) for k, v in build().items()}
        s.run(v1.global_variables_initializer())
        found = [(c, s.run(outputs, {f"{k}:0": v for k, v in c.items()})) for c in calls]
        inputs = {k: s.graph.get_tensor_by_name(f"{k}:0") for k in calls[0]}
        keep(s, folder, inputs, outputs)
    v1.enable_control_flow_v2()
    return found


def frozen(s, folder, inputs, outputs):
    graph = v1.graph_util.convert_variables_to_constants(s, s.graph.as_graph_def(), list(outputs))
    folder.mkdir()
    (folder / "graph.pb").write_bytes(graph.SerializeToString())


def written(s, folder, inputs, outputs):
    folder.mkdir()
    graph = v1.graph_util.extract_sub_graph(s.graph.as_graph_def(), list(outputs))
    v1.train.write_graph(graph, str(folder), "graph.pbtxt")


def checkpointed(s, folder, inputs, outputs):
    folder.mkdir()
    v1.train.Saver().save(s, str(folder / "graph"), write_state=False)


def served(s, folder, inputs, outputs):
    v1.saved_model.simple_save(s, str(folder), inputs, outputs)


def conditions():
    x = v1.placeholder(tf.float32, (3,), name="x")
    p, q = (v1.placeholder(tf.bool, (), name=name) for name in "pq")
    inner = lambda: v1.cond(q, lambda: x + 1.0, lambda: x - 1.0)  # noqa: E731
    a, b = v1.cond(p, lambda: (x * 2.0, inner()), lambda: (x + 5.0, tf.exp(x)))
    c = v1.cond(p, lambda: a * b, lambda: a - b)
    return {"a": a, "b": b, "c": c, "d": v1.cond(tf.reduce_sum(c) > 0.0, lambda: c * 3.0, lambda: tf.zeros(3))}


def nested():
    x, n = v1.placeholder(tf.float32, (4,), name="x"), v1.placeholder(tf.int32, (), name="n")

    def step(j, t):
        return j + 1, v1.cond(tf.reduce_sum(t) > 3.0, lambda: t * 0.5, lambda: t + x)

    def outer(i, s):
        return i + 1, v1.while_loop(lambda j, t: j < i + 1, step, [0, s])[1]

    i, s = v1.while_loop(lambda i, s: tf.logical_and(i < n, tf.reduce_max(s) < 100.0), outer, [0, tf.zeros(4)])
    return {"s": s, "i": i}


def recurrent():
    x = v1.placeholder(tf.float32, (None, 7, 4), name="x")
    w = v1.get_variable("w", (9, 5), initializer=tf.constant_initializer(f32(9, 5) * 0.5))
    rows = tf.transpose(x, [1, 0, 2])
    n = tf.shape(rows)[0]
    given = tf.TensorArray(tf.float32, n).unstack(rows)

    def step(t, h, out):
        h = tf.tanh(tf.matmul(tf.concat([given.read(t), h], 1), w))
        return t + 1, h, out.write(t, h)

    start = [0, tf.zeros((tf.shape(x)[0], 5)), tf.TensorArray(tf.float32, n)]
    _, h, out = v1.while_loop(lambda t, *_: t < n, step, start)
    return {"h": h, "out": tf.transpose(out.stack(), [1, 0, 2])}


def _truths():
    return [{"x": f32(3), "p": np.bool_(p), "q": np.bool_(q)} for p, q in ((1, 1), (1, 0), (0, 1))]


@maker
def frozen_conditions(folder):
    return session(folder, conditions, _truths(), frozen)


@maker
def text_nested(folder):
    return session(folder, nested, [{"x": f32(4, low=0), "n": np.int32(n)} for n in (4, 0)], written)


@maker
def checkpoint_recurrent(folder):
    return session(folder, recurrent, [{"x": f32(2, 7, 4)}], checkpointed)


@maker
def served_recurrent(folder):
    return session(folder, recurrent, [{"x": f32(2, 7, 4)}], served)


def main(names):
    HERE.mkdir(exist_ok=True)
    for name in names or MAKERS:
        keras.utils.set_random_seed(31)
        folder = Path(tempfile.mkdtemp()) / name
        calls = MAKERS[name](folder)
        with ZipFile(HERE / f"{name}.zip", "w", ZIP_DEFLATED, compresslevel=9) as archive:
            for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "fingerprint.pb"):
                archive.write(path, f"{name}/{path.relative_to(folder)}")
            for i, (inputs, outputs) in enumerate(calls):
                for side, arrays in (("in", inputs), ("out", outputs)):
                    for key, value in arrays.items():
                        with archive.open(f"{i}/{side}_{key}.npy", "w") as file:
                            np.save(file, np.asarray(value))
        shutil.rmtree(folder.parent)


if __name__ == "__main__":
    main(sys.argv[1:])
