"""Features of domain ai.onnx.ml: scaling, missing values, categories, labels."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

import numpy as np

from aot.frontends.conversion.lookup import place_of
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.frontends.onnx.tabular.scores import ML, named
from aot.ir.graph import OutPort
from aot.ir.types import Array, dtype_of
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

DEFAULT_TEXT = "_Unused"  # default of attributes that are texts


@onnx("Scaler", domain=ML)
def scaler(node: OnnxNode, x: OutPort) -> OutPort:
    """(x - offset) scale, as f32; one number for all features, or one for each."""
    wide = node.cast(x, DType.F64 if x.type.dtype is DType.F64 else DType.F32)
    offset, scale = node.numbers("offset", [0.0]), node.numbers("scale", [1.0])
    centred = node.build.Subtract(wide, _each(node, wide, offset, "offset"))
    return node.cast(node.build.Multiply(centred, _each(node, wide, scale, "scale")), DType.F32)


def _each(node: OnnxNode, x: OutPort, values: Sequence[float], name: str) -> OutPort:
    """Return one number for all features, or one for each along the last axis, checked."""
    count = x.shape[-1] if x.type.rank else 1
    if len(values) != 1 and isinstance(count, int) and len(values) != count:
        raise ModelError(f"{node.kind}: {name} must have one number or {count}, got {len(values)}")
    return node.build.const(np.array(values), x.type.dtype)


@onnx("Normalizer", domain=ML)
def normalizer(node: OnnxNode, x: OutPort) -> OutPort:
    """Rows divided by their maximum, by the sum of their absolute values, or by their length; rows of zeros stay."""
    build, norm = node.build, node.choice("norm", {n: n for n in ("MAX", "L1", "L2")}, "MAX")
    x = node.cast(x, DType.F32)
    last = node.list([x.type.rank - 1])
    match norm:
        case "MAX":
            size = build.ReduceMax(x, last, keep_dims=True)
        case "L1":
            size = build.ReduceSum(build.Abs(x), last, keep_dims=True)
        case _:
            size = build.Sqrt(build.ReduceSum(build.Multiply(x, x), last, keep_dims=True))
    return build.Divide(x, build.Select(build.Equal(size, node.like(0, x)), node.like(1, x), size))


@onnx("Imputer", domain=ML)
def imputer(node: OnnxNode, x: OutPort) -> OutPort:
    """Replace missing values by one number, or by one for each feature."""
    build = node.build
    if x.type.dtype.is_float:
        missing, values = node.number("replaced_value_float", 0.0), node.numbers("imputed_value_floats")
    else:
        missing, values = node.integer("replaced_value_int64", 0), node.integers("imputed_value_int64s")
    if not values:
        raise ModelError("Imputer: there must be a value to impute, got none")
    lost = build.NotEqual(x, x) if isnan(missing) else build.Equal(x, node.like(missing, x))
    return build.Select(lost, _each(node, x, values, "imputed values"), x)


@onnx("FeatureVectorizer", domain=ML)
def feature_vectorizer(node: OnnxNode, *parts: OutPort) -> OutPort:
    """Features of several inputs, concatenated as f32."""
    sizes = node.integers("inputdimensions", ())
    if not parts or (sizes and len(sizes) != len(parts)):
        raise ModelError(f"FeatureVectorizer: inputdimensions must have {len(parts)} numbers, got {len(sizes)}")
    rows = [p if p.type.rank > 1 else node.build.Unsqueeze(p, node.list([0])) for p in parts]
    for row, size in zip(rows, sizes, strict=bool(sizes)):
        if isinstance(row.shape[1], int) and row.shape[1] != size:
            raise ModelError(f"FeatureVectorizer: an input must have {size} features, got {row.shape[1]}")
    joined = [node.cast(row, DType.F32) for row in rows]
    return joined[0] if len(joined) == 1 else node.build.Concat(*joined, axis=1)


@onnx("OneHotEncoder", domain=ML)
def one_hot_encoder(node: OnnxNode, x: OutPort) -> OutPort:
    """1 where x equals a category [.., categories], as f32; all zeros for other values."""
    if x.type.dtype is DType.STRING:
        texts = node.texts("cats_strings")
        wide = node.build.Unsqueeze(place_of(node, x, np.array(texts, object)), node.list([x.type.rank]))
        return node.cast(node.build.Equal(wide, node.list(range(len(texts)))), DType.F32)
    values = node.integers("cats_int64s")
    categories = node.build.const(np.array(values, np.int64), DType.I64)
    wide = node.build.Unsqueeze(node.cast(x, DType.I64), node.list([x.type.rank]))
    return node.cast(node.build.Equal(wide, categories), DType.F32)


@onnx("LabelEncoder", domain=ML)
def label_encoder(node: OnnxNode, x: OutPort) -> OutPort:
    """The value for each key, or the default; keys and values are numbers or texts."""
    if node.has("classes_strings"):
        return _between(node, x, np.arange(len(node.texts("classes_strings"))), node.texts("classes_strings"))
    keys, values = _pairs(node, "keys"), _pairs(node, "values")
    default: str | float
    if node.has("default_tensor"):
        default = node.tensor("default_tensor").reshape(-1)[0]
    elif isinstance(values, tuple):
        default = node.text("default_string", DEFAULT_TEXT)
    elif values.dtype.kind == "f":
        default = node.number("default_float", -0.0)
    else:
        default = node.integer("default_int64", -1)
    return _mapped(node, x, keys, values, default)


def _pairs(node: OnnxNode, name: str) -> Array | tuple[str, ...]:
    """Return the keys, or the values, of whichever type the node has."""
    if node.has(f"{name}_tensor"):
        values = node.tensor(f"{name}_tensor").reshape(-1)
        return tuple(map(str, values.tolist())) if values.dtype == object else values
    if node.has(f"{name}_floats"):
        return np.array(node.numbers(f"{name}_floats"), np.float32)
    return node.texts(f"{name}_strings") if node.has(f"{name}_strings") else np.array(node.integers(f"{name}_int64s"))


@onnx("CategoryMapper", domain=ML)
def category_mapper(node: OnnxNode, x: OutPort) -> OutPort:
    return _between(node, x, np.array(node.integers("cats_int64s"), np.int64), node.texts("cats_strings"))


def _between(node: OnnxNode, x: OutPort, numbers: Array, texts: tuple[str, ...]) -> OutPort:
    """Map numbers to texts, or texts to numbers."""
    if x.type.dtype is DType.STRING:
        return _mapped(node, x, texts, numbers, node.integer("default_int64", -1))
    return _mapped(node, x, numbers, texts, node.text("default_string", DEFAULT_TEXT))


def _mapped(
    node: OnnxNode, x: OutPort, keys: Array | tuple[str, ...], values: Array | tuple[str, ...], default: str | float
) -> OutPort:
    """Return values[i] where x is keys[i], else the default. The first of equal keys counts.

    NaN equals NaN from LabelEncoder-4 on.
    """
    if len(keys) != len(values) or not len(keys):
        raise ModelError(f"{node.kind}: each key must have a value, got {len(keys)} keys and {len(values)} values")
    key_array = np.array(keys, object) if isinstance(keys, tuple) else keys
    if (x.type.dtype is DType.STRING) is not (key_array.dtype == object):
        raise ModelError(f"{node.kind}: keys must have the type of the data, got {x.type}")
    position = place_of(node, x, key_array, equal_nan=node.opset >= 4)
    return node.build.Gather(_table(node, values, default), position, node.scalar(0))


def _table(node: OnnxNode, values: Array | tuple[str, ...], default: str | float) -> OutPort:
    """Return the values, followed by the default."""
    if isinstance(values, tuple):
        return named(node, (*values, str(default)))
    whole: Array = np.append(values, np.array(default, values.dtype))
    return node.build.const(whole, dtype_of(whole))


@onnx("ZipMap", domain=ML)
def zip_map(node: OnnxNode, x: OutPort) -> OutPort:
    """The scores [rows, classes] unchanged: outputs are tensors, not lists of dictionaries."""
    return x
