"""Makes a stateful Llama decoder with random weights: `python -m benchmarks.language.decoder FOLDER [--layers N]`.

The graph is the one that optimum-intel exports: inputs `input_ids`, `attention_mask`, `position_ids` and `beam_idx`
with varying sizes; keys and values in variables, gathered by `beam_idx`; RMSNorm, RoPE, attention of grouped queries
and a gated MLP; sizes computed by ShapeOf, Gather and Concat. Weights are stored as `f32`, as `f16` with Convert, as
`u8` or `u4` with Convert, Subtract and Multiply, or as `nf4` or `f4e2m1` with Convert and Multiply; those of 4 bits in
groups of 64 inputs.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset6
from openvino import opset13 as ops

from aot.opset.elementwise.conversion import LEVELS
from aot.runtime.abi import DType

GROUP = 64  # inputs that share a scale of weights of 4 bits
LOWEST = np.float32(np.finfo(np.float32).min)


@dataclass(frozen=True, slots=True)
class Llama:
    """Sizes of the network; the defaults are those of SmolLM2-135M."""

    layers: int = 30
    width: int = 576
    heads: int = 9
    kept_heads: int = 3  # of keys and values
    inner: int = 1536  # of the MLP
    words: int = 49152
    weights: str = "f32"  # f32, f16, u8, u4, nf4 or f4e2m1

    @property
    def head(self) -> int:
        """Elements of a head."""
        return self.width // self.heads


class Decoder:
    """Builds the network; `model` is the result."""

    def __init__(self, config: Llama, seed: int = 0) -> None:
        self.config, self.noise = config, np.random.default_rng(seed)
        self.sinks: list[ov.Node] = []
        self.ids, self.mask, self.places = (
            ops.parameter([-1, -1], np.int64, name=name) for name in ("input_ids", "attention_mask", "position_ids")
        )
        self.beams = ops.parameter([-1], np.int32, name="beam_idx")
        self.sizes = ops.shape_of(self.ids, "i64")
        self.batch, self.length = self.size(self.sizes, 0), self.size(self.sizes, 1)

    def model(self) -> ov.Model:
        c = self.config
        words = self.stored(c.words, c.width)
        x = ops.gather(words, ops.convert(self.ids, "i32"), integer(0))
        past = [self.variable(layer) for layer in range(c.layers)]
        kept = self.size(ops.shape_of(past[0][0], "i64"), 2)
        turns, allowed = self.turns(), self.allowed(kept)
        for layer in range(c.layers):
            x = ops.add(x, self.attention(self.norm(x), past[layer], turns, allowed, layer))
            h = self.norm(x)
            gate = ops.multiply(ops.swish(self.linear(h, c.inner, c.width)), self.linear(h, c.inner, c.width))
            x = ops.add(x, self.linear(gate, c.width, c.inner))
        logits = ops.matmul(self.norm(x), words, False, True)
        logits.output(0).set_names({"logits"})
        inputs = [self.ids, self.mask, self.places, self.beams]
        for one in inputs:
            one.output(0).set_names({one.get_friendly_name()})
        return ov.Model([ops.result(logits)], self.sinks, inputs, "decoder")

    # ---- weights

    def stored(self, rows: int, columns: int) -> ov.Node:
        """A random matrix in the form of `weights`, decompressed to f32."""
        data = (self.noise.standard_normal((rows, columns), np.float32) * columns**-0.5).astype(np.float32)
        match self.config.weights:
            case "f32":
                return ops.constant(data)
            case "f16":
                return ops.convert(ops.constant(data.astype(np.float16)), "f32")
            case "u8":
                return self.compressed(data, 255, ov.Type.u8)
            case "u4":
                group = min(GROUP, columns)
                parts = self.compressed(data.reshape(rows, -1, group), 15, ov.Type.u4)
                return ops.reshape(parts, integers(rows, columns), False)
            case "nf4" | "f4e2m1" as kind:
                groups = data.reshape(rows, -1, min(GROUP, columns))
                return ops.reshape(self.coded(groups, DType(kind)), integers(rows, columns), False)
            case other:
                raise ValueError(f"weights: one of f32, f16, u8, u4, nf4, f4e2m1, got {other}")

    def coded(self, data: np.ndarray, kind: DType) -> ov.Node:
        """The nearest numbers of a type with 16 codes, times a scale for each row of the last axis."""
        levels = np.array(LEVELS[kind], np.float32)
        scale = (np.abs(data).max(-1, keepdims=True) / levels.max()).astype(np.float16)
        order = np.argsort(levels, kind="stable")
        between = (levels[order][1:] + levels[order][:-1]) / 2
        codes = order[np.searchsorted(between, data / scale)].astype(np.uint8).reshape(-1, 2)
        packed = ov.Tensor(getattr(ov.Type, kind.value), ov.Shape(data.shape))
        packed.data[...] = (codes[:, 0] | codes[:, 1] << 4).reshape(packed.data.shape)
        numbers = ops.convert(ops.constant(packed), "f16")
        return ops.convert(ops.multiply(numbers, ops.constant(scale)), "f32")

    def compressed(self, data: np.ndarray, most: int, kind: ov.Type) -> ov.Node:
        """Whole numbers of 0..`most` minus a zero point, times a scale for each row of the last axis."""
        low, high = data.min(-1, keepdims=True), data.max(-1, keepdims=True)
        scale = ((high - low) / most).astype(np.float16)
        zero = np.clip(np.rint(-low / scale), 0, most).astype(np.uint8)
        whole = np.clip(np.rint(data / scale) + zero, 0, most).astype(np.uint8)
        parts = [ops.convert(ops.constant(a, kind), "f16") for a in (whole, zero)]
        return ops.convert(ops.multiply(ops.subtract(*parts), ops.constant(scale)), "f32")

    def linear(self, x: ov.Node, rows: int, columns: int) -> ov.Node:
        return ops.matmul(x, self.stored(rows, columns), False, True)

    def norm(self, x: ov.Node) -> ov.Node:
        """RMSNorm with random factors."""
        mean = ops.reduce_mean(ops.power(x, real(2)), integers(-1), True)
        scaled = ops.multiply(x, ops.divide(real(1), ops.sqrt(ops.add(mean, real(1e-5)))))
        factors = 1 + 0.1 * self.noise.standard_normal((1, 1, self.config.width))
        return ops.multiply(ops.constant(factors.astype(np.float32)), scaled)

    # ---- sizes, variables and masks

    def size(self, shape: ov.Node, at: int) -> ov.Node:
        """Element `at` of a shape, as a tensor of one element."""
        return ops.gather(shape, integers(at), integer(0))

    def variable(self, layer: int) -> tuple[ov.Node, ov.Node]:
        """Keys and values of earlier calls, rows chosen by `beam_idx`."""
        c = self.config
        empty = ops.concat([self.batch, integers(c.kept_heads), integers(0), integers(c.head)], 0)
        found: list[ov.Node] = []
        for kind in ("key", "value"):
            name = f"past_key_values.{layer}.{kind}present.{layer}.{kind}"
            shape = ov.PartialShape([-1, c.kept_heads, -1, c.head])
            read = opset6.read_value(ops.broadcast(real(0), empty), name, ov.Type.f32, shape)
            found.append(ops.gather(read, self.beams, integer(0)))
        return found[0], found[1]

    def turns(self) -> tuple[ov.Node, ov.Node]:
        """Cosines and sines of RoPE [batch, 1, length, head]."""
        head = self.config.head
        rates = (10000.0 ** -(np.arange(0, head, 2) / head)).astype(np.float32).reshape(1, -1, 1)
        wide = ops.concat([self.batch, integers(1), integers(1)], 0)
        spread = ops.broadcast(ops.constant(rates), wide, broadcast_spec="BIDIRECTIONAL")
        places = ops.convert(ops.unsqueeze(self.places, integers(1)), "f32")
        angles = ops.transpose(ops.matmul(spread, places, False, False), integers(0, 2, 1))
        both = ops.concat([angles, angles], -1)
        return ops.unsqueeze(ops.cos(both), integers(1)), ops.unsqueeze(ops.sin(both), integers(1))

    def allowed(self, kept: ov.Node) -> ov.Node:
        """The attention mask [batch, 1, length, kept + length]: 0 where a token may look, else the lowest number."""
        whole = ops.add(kept, self.length)
        ends = ops.squeeze(whole, integers(0))
        columns = ops.range(integer(0), ends, integer(1), "i64")
        rows = ops.range(ops.squeeze(kept, integers(0)), ends, integer(1), "i64")
        later = ops.greater(ops.unsqueeze(columns, integers(0)), ops.unsqueeze(rows, integers(1)))
        shape = ops.concat([self.batch, integers(1), integers(1), integers(1)], 0)
        later = ops.unsqueeze(ops.unsqueeze(later, integers(0)), integers(0))
        later = ops.broadcast(later, shape, broadcast_spec="BIDIRECTIONAL")
        padding = ops.equal(ops.unsqueeze(ops.unsqueeze(self.mask, integers(1)), integers(1)), integer(0))
        hidden = ops.logical_or(later, padding)
        return ops.select(hidden, ops.constant(LOWEST), real(0))

    # ---- attention

    def attention(
        self, x: ov.Node, past: tuple[ov.Node, ov.Node], turns: tuple[ov.Node, ov.Node], allowed: ov.Node, layer: int
    ) -> ov.Node:
        c = self.config
        q = self.turned(self.split(self.linear(x, c.width, c.width), c.heads), turns)
        few = c.kept_heads * c.head
        k = self.turned(self.split(self.linear(x, few, c.width), c.kept_heads), turns)
        v = self.split(self.linear(x, few, c.width), c.kept_heads)
        spread: list[ov.Node] = []
        for kind, before, now in zip(("key", "value"), past, (k, v), strict=True):
            both = ops.concat([before, now], 2)
            self.sinks.append(opset6.assign(both, f"past_key_values.{layer}.{kind}present.{layer}.{kind}"))
            spread.append(self.repeated(both))
        mixed = ops.scaled_dot_product_attention(q, *spread, allowed, real(c.head**-0.5), False)
        rows = ops.transpose(mixed, integers(0, 2, 1, 3))
        joined = ops.reshape(rows, ops.concat([self.batch, self.length, integers(c.width)], 0), False)
        return self.linear(joined, c.width, c.width)

    def split(self, x: ov.Node, heads: int) -> ov.Node:
        return ops.transpose(ops.reshape(x, integers(0, 0, heads, self.config.head), True), integers(0, 2, 1, 3))

    def turned(self, x: ov.Node, turns: tuple[ov.Node, ov.Node]) -> ov.Node:
        """RoPE."""
        half = self.config.head // 2
        first = ops.slice(x, integers(0), integers(half), integers(1), integers(3))
        second = ops.slice(x, integers(half), integers(2**63 - 1), integers(1), integers(3))
        swapped = ops.concat([ops.multiply(second, real(-1)), first], -1)
        return ops.add(ops.multiply(x, turns[0]), ops.multiply(swapped, turns[1]))

    def repeated(self, x: ov.Node) -> ov.Node:
        """Each head of keys or values for the heads of queries that read it."""
        c = self.config
        shape = ops.shape_of(x, "i64")
        batch, length = self.size(shape, 0), self.size(shape, 2)
        groups = integers(c.kept_heads, c.heads // c.kept_heads)
        wide = ops.concat([batch, groups, length, integers(c.head)], 0)
        spread = ops.broadcast(ops.unsqueeze(x, integers(2)), wide, broadcast_spec="BIDIRECTIONAL")
        return ops.reshape(spread, ops.concat([batch, integers(c.heads), length, integers(c.head)], 0), False)


def integers(*values: int) -> ov.Node:
    return ops.constant(np.array(values, np.int64))


def integer(value: int) -> ov.Node:
    return ops.constant(np.int64(value))


def real(value: float) -> ov.Node:
    return ops.constant(np.float32(value))


def make(folder: Path, config: Llama | None = None) -> Path:
    """Writes model.xml and model.bin; returns the path of the former."""
    folder.mkdir(parents=True, exist_ok=True)
    ov.save_model(Decoder(config or Llama()).model(), folder / "model.xml", compress_to_fp16=False)
    return folder / "model.xml"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.language.decoder", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=Llama().layers)
    parser.add_argument("--weights", default=Llama().weights, help="f32, f16, u8, u4, nf4 or f4e2m1")
    args = parser.parse_args()
    print(make(args.folder, Llama(layers=args.layers, weights=args.weights)))


if __name__ == "__main__":
    main()
