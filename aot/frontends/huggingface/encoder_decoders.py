"""Encoder-decoder models in folders of Hugging Face: T5, BART and their relatives, Whisper."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import cast

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Var
from aot.frontends.huggingface.config import FILE, Architecture, Network, activation_named, unsupported
from aot.frontends.huggingface.container import read_json, read_tensors
from aot.frontends.huggingface.names import HEAD, TOKENS, Names
from aot.frontends.huggingface.quantized import scheme_of
from aot.frontends.huggingface.texts import GENERATION, texts_of
from aot.frontends.huggingface.weights import LM_HEAD, FolderWeights
from aot.frontends.language.config import ALL_TOKENS, MAX_LAYERS, MAX_TOKENS, Config, Factors, Family, Values
from aot.frontends.language.encoder_decoder import (
    DECODER,
    ENCODER,
    DecoderStack,
    EncoderDecoderConfig,
    EncoderStack,
    PositionTable,
)
from aot.frontends.language.speech_encoder import STATES, SpeechEncoderStack
from aot.ir.build import Builder
from aot.ir.graph import Graph
from aot.ir.types import Array
from aot.runtime.errors import UnsupportedError
from aot.speech.special_tokens import special_tokens_in
from aot.text.library_texts import FOLDER, SPEECH, START

HEADS = ("ForConditionalGeneration", "MTModel")  # ends of the names of networks that give logits of words
SETTINGS_OF_SPEECH = (
    "begin_suppress_tokens",
    "eos_token_id",
    "is_multilingual",
    "lang_to_id",
    "max_initial_timestamp_index",
    "no_timestamps_token_id",
    "suppress_tokens",
    "task_to_id",
)
LOGITS_BIAS = "logits.bias"
MAX_WORDS, MAX_DISTANCE = 1 << 31, 1 << 16
MAX_TABLE = 1 << 26  # waves of all positions of a table that no file holds
SHOWN = 5  # names in an error
FIRST_ROWS = 2  # first rows of position tables that no token uses
WAVE_LENGTH = 10000.0  # wave of positions, as a multiple of the shortest


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of encoders and decoders: names of tensors and facts of a config.json; `is_speech`: it reads audio."""

    names: Callable[[Values], Names]
    facts: Callable[[Values], EncoderDecoderConfig]
    is_speech: bool = False


def read(path: Path, config: Mapping[str, object]) -> Graph:
    """Return the network of a folder; `config` is the object in its config.json.

    CorruptError for files that are damaged, UnsupportedError for networks without a graph.
    """
    kind, v = KINDS[str(config["model_type"])], Values(f"{path.name}/{FILE}", config)
    _check_architecture(v, path)
    facts, name = kind.facts(v), path.absolute().name
    graph = Graph(name=name, file=name)
    weights = Weights(path, v, kind.names(v), facts, graph)
    table = weights.matrix(f"{TOKENS}.weight", facts.vocab_size, facts.decoder.width)
    own = f"{HEAD}.weight"
    head = weights.matrix(own, facts.vocab_size, facts.decoder.width) if weights.has(own) else table
    batch = Var("batch", None, 1)
    if kind.is_speech:
        source = SpeechEncoderStack(graph, facts, weights).encode(v.integer("num_mel_bins", 80, 8, 512))
    else:
        source = EncoderStack(graph, facts, weights).read(table, batch)
    DecoderStack(graph, facts, weights, 1 if kind.is_speech else batch).build(source, table, head)
    if weights.unread:
        names, count = ", ".join(map(repr, weights.unread[:SHOWN])), len(weights.unread)
        raise UnsupportedError(f"{name}: all tensors belong to the network, got {count} others: {names}")
    max_tokens = _positions(v)
    texts = {**texts_of(path, config, max_tokens), START: json.dumps(_start(path, v))}
    graph.rt_info[FOLDER] = {**texts, SPEECH: json.dumps(_speech(path, v))} if kind.is_speech else texts
    return graph


def _speech(folder: Path, v: Values) -> Mapping[str, object]:
    """Return the settings for transcriptions, as generation_config.json has them."""
    path = folder / GENERATION
    generation = read_json(path) if path.is_file() else {}
    settings = {"eos_token_id": v.find("eos_token_id"), **generation}
    _ = special_tokens_in(Values(f"{folder.name}/{GENERATION}", settings))  # CorruptError for wrong ones
    return {key: settings[key] for key in SETTINGS_OF_SPEECH if key in settings}


def _positions(v: Values) -> int:
    """Return the most tokens that a text of the decoder may have."""
    names = ("max_target_positions", "max_position_embeddings", "n_positions")
    return next((v.integer(name, most=MAX_TOKENS) for name in names if v.find(name) is not None), 512)


def _check_architecture(v: Values, path: Path) -> None:
    """Raise UnsupportedError for a network that gives no logits of words."""
    architectures = v.find("architectures")
    names = list(map(str, cast("list[object]", architectures))) if isinstance(architectures, list) else []
    if names and not names[0].endswith(HEADS):
        raise unsupported(v, "encoders with a decoder that gives logits of words can be read", names[0], path)
    if v.find("share_encoder_decoder_embeddings", True) is not True:
        raise unsupported(v, "one table of words for encoder and decoder can be read", "one each", path)


def _start(folder: Path, v: Values) -> list[int]:
    """Return the tokens that begin an answer, by generation_config.json or else config.json."""
    path = folder / GENERATION
    g = Values(f"{folder.name}/{GENERATION}", read_json(path) if path.is_file() else {})
    last = v.integer("vocab_size", most=MAX_WORDS) - 1
    usual = v.find("decoder_start_token_id", v.find("bos_token_id", v.find("pad_token_id")))
    tokens = [g.integer("decoder_start_token_id", usual if isinstance(usual, int) else 0, 0, last)]
    if g.find("forced_bos_token_id", v.find("forced_bos_token_id")) is not None:
        tokens.append(g.integer("forced_bos_token_id", v.integer("forced_bos_token_id", 0, 0, last), 0, last))
    return tokens


class Weights(FolderWeights):
    """The tensors of a folder with an encoder and a decoder."""

    def __init__(self, path: Path, v: Values, names: Names, facts: EncoderDecoderConfig, graph: Graph) -> None:
        tensors = read_tensors(path)
        tied = v.find("tie_word_embeddings", True) is True and v.find("scale_decoder_outputs", True) is True
        own_head = not tied and f"{LM_HEAD}.weight" in tensors
        architecture = Architecture(facts.decoder.family, names)
        network = Network(facts.decoder, architecture, not own_head, facts.vocab_size, 0, None, scheme_of(v))
        super().__init__(tensors, network, Builder(graph), graph.name)

    def _place(self, name: str) -> tuple[str, int | None]:
        if name == LOGITS_BIAS:
            return next((key for key in self.tensors if key.endswith("final_logits_bias")), name), None
        return super()._place(name)


def _t5_facts(v: Values) -> EncoderDecoderConfig:
    activation = str(v.find("feed_forward_proj", "relu"))
    gated, name = activation.startswith("gated-"), activation.removeprefix("gated-")
    scaled = v.find("scale_decoder_outputs", v.find("tie_word_embeddings", True)) is True
    width, layers = v.integer("d_model"), v.integer("num_layers", most=MAX_LAYERS)
    count = v.integer("relative_attention_num_buckets", 32, 4)

    def config(layers: int) -> Config:
        return _config(
            Family(gated=gated),
            layers,
            (width, v.integer("num_heads"), v.integer("d_ff", most=1 << 24)),
            activation_named(v, "gelu_new" if gated and name == "gelu" else name),
            key=v.integer("d_kv", 64),
            scale=1.0,
            epsilon=v.real("layer_norm_epsilon", 1e-6),
            factors=Factors(logits=width**-0.5 if scaled else 1.0),
        )

    return EncoderDecoderConfig(
        config(layers),
        config(v.integer("num_decoder_layers", layers, most=MAX_LAYERS)),
        v.integer("vocab_size", most=MAX_WORDS),
        PositionTable(),
        PositionTable(),
        pre_norm=True,
        final_norm=True,
        buckets=count,
        max_distance=v.integer("relative_attention_max_distance", 128, count, MAX_DISTANCE),
    )


def bart_facts(
    v: Values, positions: PositionTable, *, pre_norm: bool = False, embedding_norm: bool = False
) -> EncoderDecoderConfig:
    """Return the facts of BART and its relatives, with one kind of positions in both stacks."""
    width, factors = v.integer("d_model"), Factors()
    if v.find("scale_embedding") is True:
        factors = Factors(embedding=sqrt(width))
    activation = activation_named(v, str(v.find("activation_function", "gelu")))

    def config(part: str) -> Config:
        heads = v.integer(f"{part}_attention_heads")
        if width % heads:
            raise v.wrong("d_model", f"a multiple of {heads} heads", width)
        sizes = width, heads, v.integer(f"{part}_ffn_dim", most=1 << 24)
        layers = v.integer(f"{part}_layers", most=MAX_LAYERS)
        return _config(Family(centred=True, gated=False, learned=True), layers, sizes, activation, factors=factors)

    vocab_size = v.integer("vocab_size", most=MAX_WORDS)
    return EncoderDecoderConfig(
        config("encoder"),
        config("decoder"),
        vocab_size,
        positions,
        positions,
        pre_norm=pre_norm,
        final_norm=pre_norm,
        embedding_norm=embedding_norm,
    )


def _config(
    family: Family,
    layers: int,
    sizes: tuple[int, int, int],
    activation: str,
    *,
    key: int = 0,
    scale: float = 0.0,
    epsilon: float = 1e-5,
    factors: Factors,
) -> Config:
    """Return the sizes of a stack. `sizes`: width, heads and elements between the products of the MLP."""
    width, heads, inner = sizes
    key = key or width // heads
    return Config(
        family=family,
        layers=layers,
        width=width,
        inner=inner,
        heads=heads,
        key_heads=heads,
        key=key,
        value=key,
        rotated=0,
        epsilon=epsilon,
        base=WAVE_LENGTH,
        local_base=WAVE_LENGTH,
        stretch=1.0,
        window=ALL_TOKENS,
        local=(False,) * layers,
        activation=activation,
        scale=scale,
        factors=factors,
    )


def _learned(v: Values) -> PositionTable:
    return PositionTable(_most(v) + FIRST_ROWS, FIRST_ROWS)


def _whisper_facts(v: Values) -> EncoderDecoderConfig:
    states, rows = v.integer("max_source_positions", STATES), v.integer("max_target_positions", 448, most=1 << 20)
    if states != STATES:
        raise UnsupportedError(f"{v.file}: speech of {STATES} states a window can be read, got {states}")
    return bart_facts(v, PositionTable(rows), pre_norm=True)


def _waves(v: Values) -> PositionTable:
    """Return Marian's and Pegasus' positions: sines and cosines. Files may store them or leave them out."""
    rows, half = _most(v), v.integer("d_model", least=2) // 2
    return PositionTable(rows, table=_wave_table(v, rows, WAVE_LENGTH ** -(np.arange(half) / half)))


def _later_waves(v: Values) -> PositionTable:
    """Return M2M-100's positions, which begin after the number of the padding token."""
    offset, half = v.integer("pad_token_id", 1, 0) + 1, v.integer("d_model", least=4) // 2
    rows = _most(v) + offset
    return PositionTable(rows, offset, _wave_table(v, rows, WAVE_LENGTH ** -(np.arange(half) / (half - 1))))


def _most(v: Values) -> int:
    return v.integer("max_position_embeddings", 1024, most=1 << 20)


def _wave_table(v: Values, rows: int, rates: Array) -> Array:
    if rows * len(rates) > MAX_TABLE:
        raise v.wrong("max_position_embeddings", f"of a table of at most {2 * MAX_TABLE} numbers", rows)
    angles = np.arange(rows)[:, None] * rates
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


_ATTENTION = {f"attn_{part}": f"self_attn.{part}_proj" for part in "qkv"} | {"attn_output": "self_attn.out_proj"}
_BART_ENCODER = {
    **_ATTENTION,
    "attn_norm": "self_attn_layer_norm",
    "ffn_up": "fc1",
    "ffn_down": "fc2",
    "ffn_norm": "final_layer_norm",
}
_BART_DECODER = {
    **_BART_ENCODER,
    **{f"cross_{part}": f"encoder_attn.{part}_proj" for part in "qkv"},
    "cross_output": "encoder_attn.out_proj",
    "cross_norm": "encoder_attn_layer_norm",
}
_STACKS = {ENCODER: "encoder", DECODER: "decoder"}
BART = Names(
    {
        TOKENS: "model.shared",
        HEAD: LM_HEAD,
        **{f"{n}_position_embd": f"model.{stack}.embed_positions" for n, stack in _STACKS.items()},
        **{f"{n}_embd_norm": f"model.{stack}.layernorm_embedding" for n, stack in _STACKS.items()},
        **{f"{n}_norm": f"model.{stack}.layer_norm" for n, stack in _STACKS.items()},
    },
    "",
    {},
    unread=("embed_tokens.weight", f"{LM_HEAD}.weight", "embed_positions.weights"),
    stacks={
        ENCODER: ("model.encoder.layers", _BART_ENCODER),
        DECODER: ("model.decoder.layers", _BART_DECODER),
    },
)
_WAVES = replace(BART, unread=(*BART.unread, "embed_positions.weight"))
_T5_ATTENTION = {f"attn_{part}": f"layer.0.SelfAttention.{part}" for part in "qkv"} | {
    "attn_output": "layer.0.SelfAttention.o",
    "attn_norm": "layer.0.layer_norm",
}
_T5_CROSS = {f"cross_{part}": f"layer.1.EncDecAttention.{part}" for part in "qkv"} | {
    "cross_output": "layer.1.EncDecAttention.o",
    "cross_norm": "layer.1.layer_norm",
}


def _t5_mlp(layer: int, *, gated: bool) -> Mapping[str, str]:
    base = f"layer.{layer}.DenseReluDense"
    first = {"ffn_gate": f"{base}.wi_0", "ffn_up": f"{base}.wi_1"} if gated else {"ffn_up": f"{base}.wi"}
    return {**first, "ffn_down": f"{base}.wo", "ffn_norm": f"layer.{layer}.layer_norm"}


def _t5_names(v: Values) -> Names:
    gated = str(v.find("feed_forward_proj", "relu")).startswith("gated-")
    first = "block.0.layer.0.SelfAttention.relative_attention_bias"
    return Names(
        {
            TOKENS: "shared",
            HEAD: LM_HEAD,
            **{f"{n}_norm": f"{stack}.final_layer_norm" for n, stack in _STACKS.items()},
            **{f"{n}_relative": f"{stack}.{first}" for n, stack in _STACKS.items()},
        },
        "",
        {},
        unread=("embed_tokens.weight", f"{LM_HEAD}.weight", "EncDecAttention.relative_attention_bias.weight"),
        stacks={
            ENCODER: ("encoder.block", {**_T5_ATTENTION, **_t5_mlp(1, gated=gated)}),
            DECODER: ("decoder.block", {**_T5_ATTENTION, **_T5_CROSS, **_t5_mlp(2, gated=gated)}),
        },
    )


_WHISPER = replace(
    BART,
    whole={
        **BART.whole,
        TOKENS: "model.decoder.embed_tokens",
        HEAD: "proj_out",
        "conv1": "model.encoder.conv1",
        "conv2": "model.encoder.conv2",
    },
    unread=("proj_out.weight",),
)
_T5 = Kind(_t5_names, _t5_facts)
KINDS = {
    "t5": _T5,
    "mt5": _T5,
    "bart": Kind(lambda _: BART, lambda v: bart_facts(v, _learned(v), embedding_norm=True)),
    "mbart": Kind(lambda _: BART, lambda v: bart_facts(v, _learned(v), pre_norm=True, embedding_norm=True)),
    "marian": Kind(lambda _: _WAVES, lambda v: bart_facts(v, _waves(v))),
    "pegasus": Kind(lambda _: _WAVES, lambda v: bart_facts(v, _waves(v), pre_norm=True)),
    "whisper": Kind(lambda _: _WHISPER, _whisper_facts, is_speech=True),
    "m2m_100": Kind(lambda _: _WAVES, lambda v: bart_facts(v, _later_waves(v), pre_norm=True)),
}
