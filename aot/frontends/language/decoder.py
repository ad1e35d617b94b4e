"""Graph of a decoder-only language model, as OpenVINO's exporters write it.

Inputs `input_ids`, `attention_mask`, `position_ids` and `beam_idx`, output `logits`; keys and values are variables.

    x = embed[ids]        for each layer: x += attention(norm(x)); x += mlp(norm(x))        logits = norm(x) head^T

Learned positions are added to x at its begin, and rotations turn queries and keys otherwise.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from aot.codegen.ir.loops import Var
from aot.frontends.language.config import ClampedGate, Config, Experts, Latents
from aot.frontends.language.layers import LOWEST, TO_THE_END, Layers, Rotation
from aot.frontends.language.tensors import Tensors
from aot.ir.graph import Graph, OutPort
from aot.opset.control.infrastructure import Result
from aot.opset.control.state import Assign, ReadValue_6
from aot.opset.elementwise.broadcasting import BroadcastMode
from aot.opset.reduction.sorting import Mode, Order
from aot.runtime.abi import DType


class Decoder(Layers):
    """Builds the network of `config` in `graph` with the tensors of `weights`."""

    def __init__(self, graph: Graph, config: Config, weights: Tensors, positions: int | None = None) -> None:
        """`positions`: tokens that a sequence may have, which are the rows of the table of learned ones."""
        super().__init__(graph, config, weights)
        batch, length = Var("batch", None, 1), Var("length", None, 1)
        total = Var("total", None if positions is None else positions + 1, 1)
        self.ids = self._parameter("input_ids", DType.I64, batch, length)
        self.mask = self._parameter("attention_mask", DType.I64, batch, total)
        self.places = self._parameter("position_ids", DType.I64, batch, length)
        self.beams = self._parameter("beam_idx", DType.I32, batch)
        self.positions = positions
        sizes = self.b.ShapeOf(self.ids, output_type=DType.I64)
        self.batch, self.length = self._size(sizes, 0), self._size(sizes, 1)

    def build(self, vocab_size: int) -> None:
        """Add the network; `vocab_size`: rows of the embedding."""
        b, c, w = self.b, self.config, self.weights
        table = w.matrix("token_embd.weight", vocab_size, c.width)
        head = w.matrix("output.weight", vocab_size, c.width) if w.has("output.weight") else table
        x = self._rows(table, self.ids)
        if c.factors.embedding != 1:
            x = b.Multiply(x, c.factors.embedding)
        if c.family.learned and self.positions is not None:
            x = b.Add(x, self._rows(w.matrix("position_embd.weight", self.positions, c.width), self.places))
        past = [self._variables(layer) for layer in range(c.layers)]
        past_size = self._size(b.ShapeOf(past[0][0], output_type=DType.I64), 2)
        wide = None if c.family.learned else self._rotation(self.places, c.base, c.stretch)
        near = self._rotation(self.places, c.local_base, 1.0) if any(c.local) else None
        masks = self._masks(past_size)
        for layer, local in enumerate(c.local):
            rotation = None if layer in c.unrotated else near if local else wide
            x = self._layer(layer, x, past[layer], rotation, masks[local])
        logits = self._biased(b.MatMul(self._norm(x, "output_norm"), head, transpose_b=True), "output", vocab_size)
        logits = self._capped(self._times(logits, c.factors.logits), c.logit_cap)
        logits.names = ("logits",)
        self.graph.add(Result(), logits, name="logits").out_port(0).names = ("logits",)

    def _layer(
        self, layer: int, x: OutPort, past: tuple[OutPort, OutPort], rotation: Rotation | None, mask: OutPort
    ) -> OutPort:
        b, c, at = self.b, self.config, f"blk.{layer}"
        h = self._norm(x, f"{at}.attn_norm", optional=c.family.behind)
        mixed = self._norm(self._attention(layer, h, past, rotation, mask), f"{at}.post_attention_norm", optional=True)
        first = b.Add(x, self._times(mixed, c.factors.added))
        if not c.family.parallel or c.family.apart:
            h = self._norm(x if c.family.parallel else first, f"{at}.ffn_norm", optional=c.family.behind)
        experts = c.experts if c.experts is not None and layer in c.experts.layers else None
        h = self._mlp(at, h) if experts is None else self._with_shared(at, h, experts)
        h = self._norm(h, f"{at}.post_ffw_norm", optional=True)
        return b.Add(first, self._times(h, c.factors.added))

    def _with_shared(self, at: str, x: OutPort, e: Experts) -> OutPort:
        chosen = self._times(self._experts(at, x, e), e.scale)
        return self.b.Add(chosen, self._mlp(at, x, e.shared, "_shexp")) if e.shared else chosen

    def _experts(self, at: str, x: OutPort, e: Experts) -> OutPort:
        """Return the sum of the chosen experts' MLPs, which compute the rows of all tokens in the order of experts."""
        b, c = self.b, self.config
        rows = b.Reshape(x, self._integers(-1, c.width))
        shares = b.Softmax(self._linear(rows, f"{at}.ffn_gate_inp", e.count, c.width), axis=-1)
        shares, expert_indices = self._ranked(shares, self._integer(e.chosen), Mode.MAX)
        if e.normalised:
            shares = b.Divide(shares, b.ReduceSum(shares, self._integers(-1), keep_dims=True))
        flat = b.Reshape(expert_indices, self._integers(-1))
        count = b.Squeeze(b.ShapeOf(flat, output_type=DType.I64), self._integers(0))
        experts, order = self._ranked(flat, count, Mode.MIN)
        numbers = b.const(np.arange(e.count)[None], DType.I64)
        before = b.Convert(b.LessEqual(b.Unsqueeze(flat, self._integers(1)), numbers), destination_type=DType.I32)
        ends = b.ReduceSum(before, self._integers(0))
        taken = b.Gather(rows, b.Divide(order, self._integer(e.chosen)), self._integer(0))
        grouped = partial(self._grouped, at, e.count, experts, ends)
        gate, up = (grouped(taken, name, e.inner, c.width) for name in ("gate", "up"))
        if e.clamped is None:
            inner = b.Multiply(self._activated(gate, c.activation), up)
        else:
            inner = self._clamped(gate, up, e.clamped)
        down = grouped(inner, "down", c.width, e.inner)
        back = b.Gather(down, self._ranked(order, count, Mode.MIN)[1], self._integer(0))
        each = b.Reshape(back, self._integers(-1, e.chosen, c.width))
        whole = b.ReduceSum(b.Multiply(each, b.Unsqueeze(shares, self._integers(2))), self._integers(1))
        return b.Reshape(whole, b.ShapeOf(x, output_type=DType.I64))

    def _grouped(
        self, at: str, count: int, experts: OutPort, ends: OutPort, x: OutPort, part: str, rows: int, columns: int
    ) -> OutPort:
        """Multiply the rows of each expert by its matrix, and add its bias."""
        b, w, name = self.b, self.weights, f"{at}.ffn_{part}_exps"
        y = b.GroupedMatMul(x, w.experts(f"{name}.weight", count, rows, columns), ends)
        if not w.has(f"{name}.bias"):
            return y
        return b.Add(y, self._rows(b.const(w.floats(f"{name}.bias", count, rows), DType.F32), experts))

    def _clamped(self, gate: OutPort, up: OutPort, how: ClampedGate) -> OutPort:
        b = self.b
        gate = b.Minimum(gate, how.limit)
        up = b.Clamp(up, min=-how.limit, max=how.limit)
        return b.Multiply(b.Swish(gate, b.const(how.slope, DType.F32)), b.Add(up, 1.0))

    def _ranked(self, x: OutPort, count: OutPort, mode: Mode) -> tuple[OutPort, OutPort]:
        """Return the best elements along the last axis and their places; equal ones keep their order."""
        how = {"mode": mode, "sort": Order.VALUE, "index_element_type": DType.I64, "stable": True}
        port = self.b.TopK(x, count, axis=-1, outputs=2, **how)
        return port, port.node.out_port(1)

    def _times(self, x: OutPort, factor: float) -> OutPort:
        return x if factor == 1 else self.b.Multiply(x, factor)

    def _attention(
        self, layer: int, x: OutPort, past: tuple[OutPort, OutPort], rotation: Rotation | None, mask: OutPort
    ) -> OutPort:
        b, c, at = self.b, self.config, f"blk.{layer}"
        q, k, v = self._separate(x, at, rotation) if c.latents is None else self._of_latents(x, at, rotation, c.latents)
        spread: list[OutPort] = []
        for kind, before, now, size in zip(("key", "value"), past, (k, v), (c.key, c.value), strict=True):
            both = b.Concat(before, now, axis=2)
            self.graph.add(Assign(variable_id=_variable(layer, kind)), both)
            spread.append(self._repeated(both, size))
        mixed = self._mixed(q, spread[0], spread[1], mask, self._sinks(at))
        rows = b.Transpose(mixed, self._integers(0, 2, 1, 3))
        joined = b.Reshape(rows, self._integers(0, 0, c.heads * c.value), special_zero=True)
        return self._linear(joined, f"{at}.attn_output", c.width, c.heads * c.value)

    def _sinks(self, at: str) -> tuple[OutPort, ...]:
        if not self.config.family.sinks:
            return ()
        floats = self.weights.floats(f"{at}.attn_sinks.weight", self.config.heads)
        return (self.b.const(floats.reshape(1, -1, 1, 1), DType.F32),)

    def _separate(self, x: OutPort, at: str, rotation: Rotation | None) -> tuple[OutPort, OutPort, OutPort]:
        """Queries, keys and values [batch, heads, length, elements], each of products of its own."""
        c = self.config
        q, k, v = self._projections(x, at)
        if c.family.whole:
            q = self._norm(q, f"{at}.attn_q_norm", size=c.heads * c.key)
            k = self._norm(k, f"{at}.attn_k_norm", size=c.key_heads * c.key)
        q, k, v = (
            self._heads(q, c.heads, c.key),
            self._heads(k, c.key_heads, c.key),
            self._heads(v, c.key_heads, c.value),
        )
        if not c.family.whole:
            q = self._norm(q, f"{at}.attn_q_norm", optional=True, size=c.key)
            k = self._norm(k, f"{at}.attn_k_norm", optional=True, size=c.key)
        return self._rotated(q, rotation), self._rotated(k, rotation), v

    def _of_latents(
        self, x: OutPort, at: str, rotation: Rotation | None, sizes: Latents
    ) -> tuple[OutPort, OutPort, OutPort]:
        """Queries, keys and values of all heads; the rotated elements of queries and keys become the first ones."""
        b, c, rank = self.b, self.config, sizes.keys
        unrotated = c.key - c.rotated
        if sizes.queries:
            low = self._linear(x, f"{at}.attn_q_a", sizes.queries, c.width)
            x_of_q, end, width = self._norm(low, f"{at}.attn_q_a_norm", size=sizes.queries), "_b", sizes.queries
        else:
            x_of_q, end, width = x, "", c.width
        q = self._heads(self._linear(x_of_q, f"{at}.attn_q{end}", c.heads * c.key, width), c.heads, c.key)
        turned = self._rotated(self._halves(self._slice(q, unrotated, c.key)), rotation)
        q = b.Concat(turned, self._slice(q, 0, unrotated), axis=-1)
        both = self._linear(x, f"{at}.attn_kv_a_mqa", rank + c.rotated, c.width)
        one = self._halves(self._heads(self._slice(both, rank, rank + c.rotated, axis=2), 1, c.rotated))
        heads = self._integers(1, c.heads, 1, 1)
        one = b.Broadcast(self._rotated(one, rotation), heads, mode=BroadcastMode.BIDIRECTIONAL)
        low = self._norm(self._slice(both, 0, rank, axis=2), f"{at}.attn_kv_a_norm", size=rank)
        each = unrotated + c.value
        wide = self._heads(self._linear(low, f"{at}.attn_kv_b", c.heads * each, rank), c.heads, each)
        return q, b.Concat(one, self._slice(wide, 0, unrotated), axis=-1), self._slice(wide, unrotated, each)

    def _halves(self, x: OutPort) -> OutPort:
        """Put the first elements of all pairs of neighbours before the second ones."""
        end, step, axis = (self._integers(n) for n in (TO_THE_END, 2, 3))
        return self.b.Concat(*(self.b.Slice(x, self._integers(n), end, step, axis) for n in (0, 1)), axis=-1)

    def _repeated(self, x: OutPort, size: int) -> OutPort:
        """Repeat each head of keys or values for the heads of queries that read it."""
        b, c = self.b, self.config
        if c.heads == c.key_heads:
            return x
        shape = b.ShapeOf(x, output_type=DType.I64)
        batch, length = self._size(shape, 0), self._size(shape, 2)
        wide = b.Concat(
            batch, self._integers(c.key_heads, c.heads // c.key_heads), length, self._integers(size), axis=0
        )
        spread = b.Broadcast(b.Unsqueeze(x, self._integers(2)), wide, mode=BroadcastMode.BIDIRECTIONAL)
        return b.Reshape(spread, b.Concat(batch, self._integers(c.heads), length, self._integers(size), axis=0))

    # ---- variables, rotations and masks

    def _variables(self, layer: int) -> tuple[OutPort, OutPort]:
        """Keys and values of earlier calls, rows chosen by `beam_idx`."""
        b, c = self.b, self.config
        ports: list[OutPort] = []
        for kind, size in (("key", c.key), ("value", c.value)):
            empty = b.Concat(self.batch, self._integers(c.key_heads, 0, size), axis=0)
            rows, past = (Var(f"{name}.{layer}.{kind}", None, 0) for name in ("rows", "past"))
            read = ReadValue_6(_variable(layer, kind), DType.F32, (rows, c.key_heads, past, size))
            value = b(read, b.Broadcast(b.const(0.0, DType.F32), empty))
            ports.append(b.Gather(value, self.beams, self._integer(0)))
        return ports[0], ports[1]

    def _masks(self, kept: OutPort) -> dict[bool, OutPort]:
        """Attention masks [batch, 1, length, kept + length]: 0 where a token looks; by True those of local layers."""
        b, c = self.b, self.config
        end = b.Squeeze(b.Add(kept, self.length), self._integers(0))
        first = b.Squeeze(kept, self._integers(0))
        columns = b.Range(self._integer(0), end, self._integer(1), output_type=DType.I64)
        rows = b.Range(first, end, self._integer(1), output_type=DType.I64)
        columns, rows = b.Unsqueeze(columns, self._integers(0)), b.Unsqueeze(rows, self._integers(1))
        padding = b.Equal(b.Unsqueeze(self.mask, self._integers(1, 2)), self._integer(0))
        masks: dict[bool, OutPort] = {}
        for local in (False, True) if any(c.local) else (False,):
            hidden = b.Greater(columns, rows)
            hidden = b.Unsqueeze(hidden, self._integers(0, 1))
            if local:
                positions = self._places_of(b.Unsqueeze(rows, self._integers(0, 1)), columns)
                hidden = b.LogicalOr(hidden, b.LessEqual(columns, b.Subtract(positions, self._integer(c.window))))
            hidden = b.LogicalOr(hidden, padding)
            masks[local] = b.Select(hidden, b.const(LOWEST, DType.F32), b.const(0.0, DType.F32))
        return masks

    def _places_of(self, rows: OutPort, columns: OutPort) -> OutPort:
        """Place of each new token [batch, 1, length, 1]: of a single one, the last that the mask of its row shows."""
        b = self.b
        shown = b.Select(b.NotEqual(self.mask, self._integer(0)), columns, self._integer(0))
        last = b.Unsqueeze(b.ReduceMax(shown, self._integers(1), keep_dims=True), self._integers(1, 2))
        return b.Select(b.Equal(self.length, self._integers(1)), last, rows)


def _variable(layer: int, kind: str) -> str:
    return f"past_key_values.{layer}.{kind}"
