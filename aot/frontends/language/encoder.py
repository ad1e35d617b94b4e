"""Graph of an encoder, which makes a vector of a text, or scores of a pair of texts: BERT and its relatives.

Inputs `input_ids` and `attention_mask` [batch, length], output `sentence_embedding` [batch, width]. With a head there
is also an input `token_type_ids` where tokens have several types, and the output is `scores` [batch, labels].

    x = norm(embed[ids] + places + types)      for each layer: x = norm(x + attention(x)); x = norm(x + mlp(x))

Where norms stand before (`Shape.before`): x += attention(norm(x)); x += mlp(norm(x)), and x = norm(x) at the end.
"""

from __future__ import annotations

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Var
from aot.frontends.language.config import Config
from aot.frontends.language.layers import LOWEST, Layers, Rotation, buckets
from aot.frontends.language.tensors import Tensors
from aot.ir.graph import Graph, OutPort
from aot.opset.control.infrastructure import Result
from aot.runtime.abi import DType
from aot.runtime.generation.interface import EMBEDDING, IDS, MASK
from aot.text.library_texts import PAIR_SCORES, TOKEN_TYPES

CLS, MOST, MEAN = "cls", "max", "mean"  # ways to make a vector of those of tokens, in the order of their parts
LEAST_COUNT, LEAST_LENGTH = 1e-9, 1e-12  # what sums are divided by at least, as sentence-transformers does
TANH = "tanh"  # function of most heads
FARTHEST = 128  # tokens, from which on relative positions are one


@dataclass(frozen=True, slots=True)
class Shape:
    """Facts of an encoder beside its `Config`.

    `most`: tokens of a text; `places`: rows of the table of positions, `padding`: a token that has none, after which
    they begin, None: they begin at 0; `types`: rows of the table of token types; `buckets`: of relative positions;
    `before`: norms stand before attention and MLP. Numbers of tables are 0 without one.
    """

    most: int
    places: int = 0
    padding: int | None = None
    types: int = 0
    buckets: int = 0
    before: bool = False


@dataclass(frozen=True, slots=True)
class Pooling:
    """A way to make a vector of those of tokens: parts of `kinds` side by side.

    `normalised`: its length is 1.
    """

    kinds: tuple[str, ...] = (MEAN,)
    normalised: bool = False


@dataclass(frozen=True, slots=True)
class Head:
    """Facts of a head: a product, `activation`, a norm where `normed`, and a product with `labels` rows make scores.

    `bounded`: the sigmoid of the scores is taken.
    """

    labels: int
    activation: str = TANH
    normed: bool = False
    bounded: bool = False


class Encoder(Layers):
    """Builds the network of `config` and `shape` in `graph` with the tensors of `weights`, and a head after it."""

    def __init__(self, graph: Graph, config: Config, weights: Tensors, shape: Shape, head: Head | None = None) -> None:
        super().__init__(graph, config, weights)
        self.shape, self.head = shape, head
        batch, length = Var("batch", None, 1), Var("length", shape.most + 1, 1)
        self.ids = self._parameter(IDS, DType.I64, batch, length)
        self.mask = self._parameter(MASK, DType.I64, batch, length)
        typed = head is not None and shape.types > 1
        self.types = self._parameter(TOKEN_TYPES, DType.I64, batch, length) if typed else None
        size = self._size(self.b.ShapeOf(self.ids, output_type=DType.I64), 1)
        end = self.b.Squeeze(size, self._integers(0))
        self.range = self.b.Range(self._integer(0), end, self._integer(1), output_type=DType.I64)

    def build(self, vocab_size: int, pooling: Pooling) -> None:
        """Add the network; `vocab_size`: rows of the embedding."""
        b, c, w = self.b, self.config, self.weights
        x = self._rows(w.matrix("token_embd.weight", vocab_size, c.width), self.ids)
        if self.shape.types:
            table = w.floats("token_types.weight", self.shape.types, c.width)
            first = b.const(table[0], DType.F32)
            x = b.Add(x, first if self.types is None else self._rows(b.const(table, DType.F32), self.types))
        if self.shape.places:
            x = b.Add(x, self._rows(w.matrix("position_embd.weight", self.shape.places, c.width), self._places()))
        x = self._norm(x, "token_embd_norm")
        masks = self._masks()
        rotations = {False: None, True: None} if self.shape.places else self._rotations()
        for layer, local in enumerate(c.local):
            x = self._layer(f"blk.{layer}", x, rotations[local], masks[local])
        if self.shape.before:
            x = self._norm(x, "output_norm")
        output, name = self._pooled(x, pooling), EMBEDDING
        if self.head is not None:
            output, name = self._scores(output, self.head), PAIR_SCORES
        output.names = (name,)
        self.graph.add(Result(), output, name=name).out_port(0).names = (name,)

    def _scores(self, x: OutPort, head: Head) -> OutPort:
        width = self.config.width
        x = self._linear(x, "head_dense", width, width)
        x = self.b.Tanh(x) if head.activation == TANH else self._activated(x, head.activation)
        x = self._linear(self._norm(x, "head_norm") if head.normed else x, "classifier", head.labels, width)
        return self.b.Sigmoid(x) if head.bounded else x

    def _layer(self, at: str, x: OutPort, rotation: Rotation | None, mask: OutPort) -> OutPort:
        b = self.b
        if self.shape.before:
            x = b.Add(x, self._attention(at, self._norm(x, f"{at}.attn_norm", optional=True), rotation, mask))
            return b.Add(x, self._mlp(at, self._norm(x, f"{at}.ffn_norm")))
        x = self._norm(b.Add(x, self._attention(at, x, rotation, mask)), f"{at}.attn_output_norm")
        return self._norm(b.Add(x, self._mlp(at, x)), f"{at}.layer_output_norm")

    def _attention(self, at: str, x: OutPort, rotation: Rotation | None, mask: OutPort) -> OutPort:
        c = self.config
        q, k, v = (self._heads(part, c.heads, c.key) for part in self._projections(x, at))
        mixed = self._mixed(self._rotated(q, rotation), self._rotated(k, rotation), v, mask)
        rows = self.b.Transpose(mixed, self._integers(0, 2, 1, 3))
        joined = self.b.Reshape(rows, self._integers(0, 0, c.width), special_zero=True)
        return self._linear(joined, f"{at}.attn_output", c.width, c.width)

    def _places(self) -> OutPort:
        """Return the rows of the table of positions: of all texts, or where a token has none, of each."""
        b = self.b
        if self.shape.padding is None:
            return self.range
        padding = self._integer(self.shape.padding)
        counted = b.Convert(b.NotEqual(self.ids, padding), destination_type=DType.I64)
        return b.Add(b.Multiply(b.CumSum(counted, self._integer(1)), counted), padding)

    def _rotations(self) -> dict[bool, Rotation]:
        positions, c = self.b.Unsqueeze(self.range, self._integers(0)), self.config
        return {False: self._rotation(positions, c.base, c.stretch), True: self._rotation(positions, c.local_base, 1.0)}

    def _masks(self) -> dict[bool, OutPort]:
        """Return the bias of scores; for True that of layers that see a window of tokens on both sides."""
        b, c = self.b, self.config
        padding = b.Equal(b.Unsqueeze(self.mask, self._integers(1, 2)), self._integer(0))
        columns, rows = b.Unsqueeze(self.range, self._integers(0)), b.Unsqueeze(self.range, self._integers(1))
        distance = b.Subtract(columns, rows)
        outside_window = b.Unsqueeze(b.Greater(b.Abs(distance), self._integer(c.window)), self._integers(0, 1))
        hidden = {False: padding, **({True: b.LogicalOr(padding, outside_window)} if any(c.local) else {})}
        none, lowest = b.const(0.0, DType.F32), b.const(LOWEST, DType.F32)
        ports = {local: b.Select(where, lowest, none) for local, where in hidden.items()}
        return ports if not self.shape.buckets else {k: b.Add(x, self._relative(distance)) for k, x in ports.items()}

    def _relative(self, distance: OutPort) -> OutPort:
        """Return a number for each head and each distance between two tokens, [1, heads, length, length]."""
        most = self.shape.most
        table = self.weights.floats("relative_bias.weight", self.shape.buckets, self.config.heads)
        rows = self.b.const(table[buckets(np.arange(1 - most, most), self.shape.buckets, FARTHEST)], DType.F32)
        port = self._rows(rows, self.b.Add(distance, self._integer(most - 1)))
        return self.b.Unsqueeze(self.b.Transpose(port, self._integers(2, 0, 1)), self._integers(0))

    def _pooled(self, x: OutPort, pooling: Pooling) -> OutPort:
        b, first = self.b, self._integers(1)
        shown = b.Unsqueeze(self.mask, self._integers(2))
        parts: list[OutPort] = []
        for kind in (kind for kind in (CLS, MOST, MEAN) if kind in pooling.kinds):
            if kind == CLS:
                parts.append(b.Gather(x, self._integer(0), self._integer(1)))
            elif kind == MOST:
                seen = b.Select(b.Equal(shown, self._integer(0)), b.const(LOWEST, DType.F32), x)
                parts.append(b.ReduceMax(seen, first))
            else:
                shares = b.Convert(shown, destination_type=DType.F32)
                count = b.Maximum(b.ReduceSum(shares, first), b.const(LEAST_COUNT, DType.F32))
                parts.append(b.Divide(b.ReduceSum(b.Multiply(x, shares), first), count))
        port = parts[0] if len(parts) == 1 else b.Concat(*parts, axis=-1)
        if not pooling.normalised:
            return port
        length = b.Sqrt(b.ReduceSum(b.Multiply(port, port), self._integers(-1), keep_dims=True))
        return b.Divide(port, b.Maximum(length, b.const(LEAST_LENGTH, DType.F32)))
