"""Graph of an encoder that reads a source and a decoder that writes a text about it, in one library: T5, BART, Marian.

Inputs `encoder_input_ids` [batch, source], `encoder_attention_mask` [batch, kept source], `input_ids` [batch, length]
and `beam_idx` [batch], output `logits`. The first call is given the source, later ones a source of length 0, whose
loops do nothing. A layer of the decoder has two variables, which are appended to where they lie:

    keys, values = those that cross-attention reads, of the source | those of the tokens
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Var
from aot.frontends.language.config import Config
from aot.frontends.language.layers import LOWEST, Layers, buckets
from aot.frontends.language.tensors import Tensors
from aot.ir.graph import Graph, OutPort
from aot.ir.types import Array
from aot.opset.control.infrastructure import Result
from aot.opset.control.state import Assign, ReadValue_6
from aot.runtime.abi import DType
from aot.runtime.generation.interface import IDS, LOGITS, ROWS
from aot.text.library_texts import SOURCE_IDS, SOURCE_MASK

ENCODER, DECODER = "enc", "dec"


@dataclass(frozen=True, slots=True)
class PositionTable:
    """Positions of a stack: rows of a table, from `offset` on; `table`: that of files which have none.

    Without `rows` the stack has no positions of this kind.
    """

    rows: int = 0
    offset: int = 0
    table: Array | None = None


@dataclass(frozen=True, slots=True)
class EncoderDecoderConfig:
    """Numbers and forms of both stacks, beside the `Config` of each.

    `pre_norm`: norms stand before attention and MLP; `final_norm`: and one after the last layer; `embedding_norm`: one
    after embeddings; `buckets` of relative positions, 0 without; from `max_distance` tokens on they are one.
    """

    encoder: Config
    decoder: Config
    vocab_size: int
    encoder_positions: PositionTable
    decoder_positions: PositionTable
    pre_norm: bool = False
    final_norm: bool = False
    embedding_norm: bool = False
    buckets: int = 0
    max_distance: int = 128


@dataclass(frozen=True, slots=True)
class Source:
    """Values of a source for the decoder: `states` [batch, new, width], and their number, `new` and `whole`.

    `mask`: numbers that are added to the scores of cross-attention; None: all states are read.
    """

    states: OutPort
    new: OutPort
    whole: OutPort
    mask: OutPort | None = None


class Stack(Layers):
    """Builds layers of one of the stacks; names of its tensors begin with `name`."""

    def __init__(self, graph: Graph, facts: EncoderDecoderConfig, weights: Tensors, name: str) -> None:
        super().__init__(graph, facts.encoder if name == ENCODER else facts.decoder, weights)
        self.facts, self.name = facts, name

    def _embedded(
        self, table: OutPort, ids: OutPort, first: OutPort, length: OutPort, places: PositionTable
    ) -> OutPort:
        """Return the embeddings of tokens at `length` positions from `first` on; the table's end is checked."""
        b, c = self.b, self.config
        x = self._rows(table, ids)
        x = x if c.factors.embedding == 1 else b.Multiply(x, c.factors.embedding)
        if places.rows:
            name = f"{self.name}_position_embd.weight"
            is_computed = places.table is not None and not self.weights.has(name)
            rows = b.const(places.table, DType.F32) if is_computed else self.weights.matrix(name, places.rows, c.width)
            parts = b.Concat(b.Add(first, self._integer(places.offset)), length, self._integers(-1), axis=0)
            split = b.VariadicSplit(rows, self._integer(0), parts, outputs=3)
            x = b.Add(x, b.Unsqueeze(split.node.out_port(1), self._integers(0)))
        return self._norm(x, f"{self.name}_embd_norm") if self.facts.embedding_norm else x

    def _added(self, x: OutPort, norm: str, work: Callable[[OutPort], OutPort]) -> OutPort:
        """Add what a part of a layer computes."""
        if self.facts.pre_norm:
            return self.b.Add(x, work(self._norm(x, norm)))
        return self._norm(self.b.Add(x, work(x)), norm)

    def _ended(self, x: OutPort) -> OutPort:
        return self._norm(x, f"{self.name}_norm") if self.facts.final_norm else x

    def _projected(self, x: OutPort, at: str, part: str) -> OutPort:
        c = self.config
        return self._heads(self._linear(x, f"{at}_{part}", c.heads * c.key, c.width), c.heads, c.key)

    def _attended(self, q: OutPort, k: OutPort, v: OutPort, mask: OutPort | None, at: str) -> OutPort:
        c = self.config
        rows = self.b.Transpose(self._mixed(q, k, v, mask), self._integers(0, 2, 1, 3))
        joined = self.b.Reshape(rows, self._integers(0, 0, c.heads * c.key), special_zero=True)
        return self._linear(joined, f"{at}_output", c.width, c.heads * c.key)

    def _relative(self, rows: OutPort, columns: OutPort) -> OutPort:
        """Return a number for each head and distance between positions [rows] and [columns]: [1, heads, rows, columns].

        In a decoder all tokens ahead count as the token itself: they are hidden.
        """
        b, max_distance = self.b, self.facts.max_distance
        table = self.weights.floats(f"{self.name}_relative.weight", self.facts.buckets, self.config.heads)
        both = self.name == ENCODER
        bucket_table = buckets(
            np.arange(-max_distance, max_distance + 1 if both else 1), self.facts.buckets, max_distance, both=both
        )
        distance = b.Subtract(b.Unsqueeze(columns, self._integers(0)), b.Unsqueeze(rows, self._integers(1)))
        near = b.Maximum(b.Minimum(distance, self._integer(max_distance if both else 0)), self._integer(-max_distance))
        port = self._rows(b.const(table[bucket_table], DType.F32), b.Add(near, self._integer(max_distance)))
        return b.Unsqueeze(b.Transpose(port, self._integers(2, 0, 1)), self._integers(0))

    def _range(self, first: OutPort, end: OutPort) -> OutPort:
        """Return the integers between two, which have one element each."""
        zero = self._integers(0)
        first, end = self.b.Squeeze(first, zero), self.b.Squeeze(end, zero)
        return self.b.Range(first, end, self._integer(1), output_type=DType.I64)

    def _added_mask(self, hidden: OutPort) -> OutPort:
        return self.b.Select(hidden, self.b.const(LOWEST, DType.F32), self.b.const(0.0, DType.F32))


class EncoderStack(Stack):
    """Reads the source, a text."""

    def __init__(self, graph: Graph, facts: EncoderDecoderConfig, weights: Tensors) -> None:
        super().__init__(graph, facts, weights, ENCODER)

    def read(self, table: OutPort, batch: Var) -> Source:
        """Add the inputs and the layers; `table`: the embeddings of words."""
        b, most = self.b, self.facts.encoder_positions.rows - self.facts.encoder_positions.offset
        lengths = [Var(name, most + 1 if most > 0 else None, 0) for name in ("source", "kept_source")]
        ids = self._parameter(SOURCE_IDS, DType.I64, batch, lengths[0])
        shown = self._parameter(SOURCE_MASK, DType.I64, batch, lengths[1])
        new, whole = (self._size(b.ShapeOf(port, output_type=DType.I64), 1) for port in (ids, shown))
        numbers = self._range(self._integers(0), new)
        hidden = b.Equal(b.Unsqueeze(shown, self._integers(1, 2)), self._integer(0))
        first = b.VariadicSplit(hidden, self._integer(3), b.Concat(new, b.Subtract(whole, new), axis=0), outputs=2)
        mask = self._added_mask(first)
        mask = b.Add(mask, self._relative(numbers, numbers)) if self.facts.buckets else mask
        x = self._embedded(table, ids, self._integers(0), new, self.facts.encoder_positions)
        return Source(self.layers(x, mask), new, whole, self._added_mask(hidden))

    def layers(self, x: OutPort, mask: OutPort | None) -> OutPort:
        """Add the layers and the final norm."""
        for layer in range(self.config.layers):
            at = f"{ENCODER}.{layer}"
            x = self._added(x, f"{at}.attn_norm", lambda h, at=at: self._attention(h, f"{at}.attn", mask))
            x = self._added(x, f"{at}.ffn_norm", lambda h, at=at: self._mlp(at, h))
        return self._ended(x)

    def _attention(self, x: OutPort, at: str, mask: OutPort | None) -> OutPort:
        q, k, v = (self._projected(x, at, part) for part in "qkv")
        return self._attended(q, k, v, mask, at)


class DecoderStack(Stack):
    """Writes a text about a source: keys and values of both are variables."""

    def __init__(self, graph: Graph, facts: EncoderDecoderConfig, weights: Tensors, batch: int | Var) -> None:
        super().__init__(graph, facts, weights, DECODER)
        rows = facts.decoder_positions.rows - facts.decoder_positions.offset
        length = Var("length", rows + 1 if rows > 0 else None, 1)
        self.ids = self._parameter(IDS, DType.I64, batch, length)
        self.beams = None if isinstance(batch, int) else self._parameter(ROWS, DType.I32, batch)
        sizes = self.b.ShapeOf(self.ids, output_type=DType.I64)
        self.batch, self.length = self._size(sizes, 0), self._size(sizes, 1)

    def build(self, source: Source, table: OutPort, head: OutPort) -> None:
        """Add the layers and the output; `head`: a row for each word."""
        b, c = self.b, self.config
        past = [self._variables(layer) for layer in range(c.layers)]
        past_size = self._size(b.ShapeOf(past[0][0], output_type=DType.I64), 2)
        first = b.Subtract(b.Add(past_size, source.new), source.whole)
        end = b.Add(first, self.length)
        rows, columns = self._range(first, end), self._range(self._integers(0), end)
        later = b.Greater(b.Unsqueeze(columns, self._integers(0)), b.Unsqueeze(rows, self._integers(1)))
        mask = self._added_mask(b.Unsqueeze(later, self._integers(0, 1)))
        mask = b.Add(mask, self._relative(rows, columns)) if self.facts.buckets else mask
        x = self._embedded(table, self.ids, first, self.length, self.facts.decoder_positions)
        parts = b.Concat(source.whole, end, axis=0)
        for layer in range(c.layers):
            x = self._layer(layer, x, source, past[layer], parts, mask)
        x = self._ended(x)
        x = x if c.factors.logits == 1 else b.Multiply(x, c.factors.logits)
        logits = b.MatMul(x, head, transpose_b=True)
        if self.weights.has("logits.bias"):
            logits = b.Add(logits, b.const(self.weights.floats("logits.bias", 1, self.facts.vocab_size), DType.F32))
        logits = self._biased(logits, "output", self.facts.vocab_size)
        logits.names = (LOGITS,)
        self.graph.add(Result(), logits, name=LOGITS).out_port(0).names = (LOGITS,)

    def _layer(
        self, layer: int, x: OutPort, source: Source, past: tuple[OutPort, OutPort], parts: OutPort, mask: OutPort
    ) -> OutPort:
        """`parts`: how many of the kept keys and values are those of the source, and of tokens."""
        b, at = self.b, f"{DECODER}.{layer}"
        kept: list[tuple[OutPort, OutPort]] = []

        def own(h: OutPort) -> OutPort:
            for kind, part, before in zip(("key", "value"), "kv", past, strict=True):
                read = self._projected(source.states, f"{at}.cross", part)
                new = b.Concat(read, self._projected(h, f"{at}.attn", part), axis=2)
                whole = b.Concat(before, new, axis=2)
                self.graph.add(Assign(variable_id=_variable(layer, kind)), whole)
                split = b.VariadicSplit(whole, self._integer(2), parts, outputs=2)
                kept.append((split, split.node.out_port(1)))
            q = self._projected(h, f"{at}.attn", "q")
            return self._attended(q, kept[0][1], kept[1][1], mask, f"{at}.attn")

        def cross(h: OutPort) -> OutPort:
            q = self._projected(h, f"{at}.cross", "q")
            return self._attended(q, kept[0][0], kept[1][0], source.mask, f"{at}.cross")

        x = self._added(x, f"{at}.attn_norm", own)
        x = self._added(x, f"{at}.cross_norm", cross)
        return self._added(x, f"{at}.ffn_norm", lambda h: self._mlp(at, h))

    def _variables(self, layer: int) -> tuple[OutPort, OutPort]:
        """Keys and values of earlier calls, rows chosen by `beam_idx`."""
        b, c = self.b, self.config
        ports: list[OutPort] = []
        for kind in ("key", "value"):
            empty = b.Concat(self.batch, self._integers(c.heads, 0, c.key), axis=0)
            rows, past = (Var(f"{name}.{layer}.{kind}", None, 0) for name in ("rows", "past"))
            first = 1 if self.beams is None else rows
            read = ReadValue_6(_variable(layer, kind), DType.F32, (first, c.heads, past, c.key))
            value = b(read, b.Broadcast(b.const(0.0, DType.F32), empty))
            ports.append(value if self.beams is None else b.Gather(value, self.beams, self._integer(0)))
        return ports[0], ports[1]


def _variable(layer: int, kind: str) -> str:
    return f"past_key_values.{layer}.{kind}"
