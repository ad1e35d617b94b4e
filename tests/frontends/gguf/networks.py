"""Small networks of each architecture: their files, and their meaning written out in NumPy, in f64."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.frontends.gguf.files import Array, meaning, random_bytes, write

WORDS, WIDTH, INNER, LAYERS = 64, 256, 256, 1


@dataclass
class Network:
    """An architecture with random weights; `kind`: the format of its matrices."""

    architecture: str
    kind: str = "F32"
    heads: int = 4
    kept: int = 2
    head: int = 64
    tied: bool = True
    window: int = 0
    factors: bool = False  # of the rates of rotations
    layers: int = LAYERS
    words: int = WORDS
    tensors: dict[str, tuple[str, tuple[int, ...], bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        add, q, kv = self._add, self.heads * self.head, self.kept * self.head
        add("token_embd.weight", self.words, WIDTH)
        add("output_norm.weight", WIDTH)
        if not self.tied:
            add("output.weight", self.words, WIDTH)
        if self.factors:
            add("rope_freqs.weight", self.head // 2)
        for n in range(self.layers):
            shapes = {"attn_q": (q, WIDTH), "attn_k": (kv, WIDTH), "attn_v": (kv, WIDTH), "attn_output": (WIDTH, q)}
            shapes |= {"ffn_gate": (INNER, WIDTH), "ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER)}
            vectors = {"attn_norm": WIDTH, "ffn_norm": WIDTH}
            if self.architecture in ("qwen3", "gemma3"):
                vectors |= {"attn_q_norm": self.head, "attn_k_norm": self.head}
            if self.architecture == "gemma3":
                vectors |= {"post_attention_norm": WIDTH, "post_ffw_norm": WIDTH}
            for name, shape in (*shapes.items(), *((k, (v,)) for k, v in vectors.items())):
                add(f"blk.{n}.{name}.weight", *shape)
            if self.architecture == "qwen2":
                for name, size in (("attn_q", q), ("attn_k", kv), ("attn_v", kv)):
                    add(f"blk.{n}.{name}.bias", size)

    def _add(self, name: str, *shape: int) -> None:
        kind = self.kind if len(shape) == 2 else "F32"
        raw = random_bytes(kind, shape, len(self.tensors))
        if len(shape) == 1 and "bias" not in name:
            raw = (1 + np.frombuffer(raw, np.float32)).astype(np.float32).tobytes()
        self.tensors[name] = (kind, shape, raw)

    @property
    def metadata(self) -> dict[str, object]:
        a = self.architecture
        return {
            "general.architecture": a,
            "general.name": "small",
            f"{a}.block_count": self.layers,
            f"{a}.embedding_length": WIDTH,
            f"{a}.feed_forward_length": INNER,
            f"{a}.attention.head_count": self.heads,
            f"{a}.attention.head_count_kv": self.kept,
            f"{a}.attention.key_length": self.head,
            f"{a}.attention.value_length": self.head,
            f"{a}.attention.layer_norm_rms_epsilon": 1e-5,
            f"{a}.rope.freq_base": 50000.0,
            **({f"{a}.attention.sliding_window": self.window} if self.window else {}),
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.tokens": [f"t{n}" for n in range(WORDS)],
            "tokenizer.ggml.eos_token_id": 2,
        }

    def write(self, path: Path) -> Path:
        return write(path, self.metadata, self.tensors)

    # ---- meaning

    def weight(self, name: str) -> Array:
        kind, shape, raw = self.tensors[name]
        return np.array(meaning(kind, raw)).reshape(shape)

    def logits(self, ids: list[int]) -> Array:
        """Logits of each position."""
        x = self.weight("token_embd.weight")[ids] * (WIDTH**0.5 if self.architecture == "gemma3" else 1)
        for n in range(self.layers):
            x = x + self._norm(self._attention(n, self._norm(x, f"blk.{n}.attn_norm")), f"blk.{n}.post_attention_norm")
            h = self._norm(x, f"blk.{n}.ffn_norm")
            gate, up = (h @ self.weight(f"blk.{n}.ffn_{k}.weight").T for k in ("gate", "up"))
            if self.architecture == "gemma3":
                gate = gate / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (gate + 0.044715 * gate**3)))
            else:
                gate = gate / (1 + np.exp(-gate))
            x = x + self._norm((gate * up) @ self.weight(f"blk.{n}.ffn_down.weight").T, f"blk.{n}.post_ffw_norm")
        head = "token_embd.weight" if self.tied else "output.weight"
        return self._norm(x, "output_norm") @ self.weight(head).T

    def _norm(self, x: Array, name: str) -> Array:
        if f"{name}.weight" not in self.tensors:
            return x
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * self.weight(f"{name}.weight")

    def _attention(self, n: int, x: Array) -> Array:
        parts: list[Array] = []
        for name, heads in (("attn_q", self.heads), ("attn_k", self.kept), ("attn_v", self.kept)):
            y = x @ self.weight(f"blk.{n}.{name}.weight").T
            if f"blk.{n}.{name}.bias" in self.tensors:
                y = y + self.weight(f"blk.{n}.{name}.bias")
            y = y.reshape(len(x), heads, self.head).swapaxes(0, 1)
            parts.append(y if name == "attn_v" else self._turned(self._norm(y, f"blk.{n}.{name}_norm"), n))
        q, k, v = parts
        out: list[Array] = []
        local = self.architecture == "gemma3" and (n + 1) % 6
        for h in range(self.heads):
            scores = q[h] @ k[h * self.kept // self.heads].T / self.head**0.5
            for i in range(len(x)):
                scores[i, i + 1 :] = -np.inf
                if local and self.window:
                    scores[i, : max(i - self.window + 1, 0)] = -np.inf
            e = np.exp(scores - scores.max(-1, keepdims=True))
            out.append(e / e.sum(-1, keepdims=True) @ v[h * self.kept // self.heads])
        return np.concatenate(out, -1) @ self.weight(f"blk.{n}.attn_output.weight").T

    def _turned(self, x: Array, n: int) -> Array:
        """Rotations: of neighbours for llama, of halves otherwise."""
        half = self.head // 2
        base = 10000.0 if self.architecture == "gemma3" and (n + 1) % 6 else 50000.0
        rates = base ** (-np.arange(half) / half)
        if self.factors:
            rates = rates / self.weight("rope_freqs.weight")
        angles = np.arange(x.shape[1])[:, None] * rates
        first, second = (
            (slice(0, None, 2), slice(1, None, 2)) if self.architecture == "llama" else (slice(half), slice(half, None))
        )
        y = np.empty_like(x)
        y[..., first] = x[..., first] * np.cos(angles) - x[..., second] * np.sin(angles)
        y[..., second] = x[..., second] * np.cos(angles) + x[..., first] * np.sin(angles)
        return y
