"""Encoders in folders of Hugging Face: BERT and its relatives, with pooling of sentence-transformers or a head."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import cast

from aot.codegen.dataclass import dataclass
from aot.frontends.huggingface.config import (
    FILE,
    GLOBAL,
    LOCAL,
    Architecture,
    Network,
    activation_named,
    unsupported,
)
from aot.frontends.huggingface.container import read_json, read_list, read_tensors
from aot.frontends.huggingface.names import HEAD, NORM, POSITIONS, TOKENS, Names
from aot.frontends.huggingface.weights import FolderWeights
from aot.frontends.language.config import ALL_TOKENS, MAX_LAYERS, RELU, Config, Family, Values
from aot.frontends.language.encoder import CLS, MEAN, MOST, TANH, Encoder, Head, Pooling, Shape
from aot.ir.build import Builder
from aot.ir.graph import Graph
from aot.runtime.errors import UnsupportedError
from aot.text.library_texts import CONTEXT_LENGTH, FOLDER, LABELS, SETTINGS, TOKENIZER

MODULES, SENTENCES, PROMPTS = "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"
HEADS = ("Model", "ForMaskedLM")  # ends of the names of networks whose bodies give a vector for each token
CLASSIFIER = "ForSequenceClassification"  # end of the names of networks that score texts or pairs of them
SIGMOID, IDENTITY = "Sigmoid", "Identity"
MODES = {"pooling_mode_cls_token": CLS, "pooling_mode_max_tokens": MOST, "pooling_mode_mean_tokens": MEAN}
SHOWN = 5  # names in an error
LEAST_PAIR = 8  # tokens: fewer hold no two texts with their marks


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of encoders. `keys`: what config.json calls sizes, where it has other names than BERT.

    `padding`: positions begin after the number of the token that fills up texts; `types`: there are types of tokens;
    `modern`: rotations, a gate in the MLP, and norms before. `activation`: of the head of classifiers.
    """

    names: Names
    keys: Mapping[str, str] = field(default_factory=dict[str, str])
    padding: bool = False
    types: bool = True
    modern: bool = False
    activation: str = TANH


_CLASSIFIER = {"head_dense": "classifier.dense", "classifier": "classifier.out_proj"}


def _names(body: str, layers: str, parts: Mapping[str, str], more: Mapping[str, str]) -> Names:
    embeddings = f"{body}.embeddings"
    whole = {
        TOKENS: f"{embeddings}.word_embeddings",
        POSITIONS: f"{embeddings}.position_embeddings",
        "token_types": f"{embeddings}.token_type_embeddings",
        "token_embd_norm": f"{embeddings}.LayerNorm",
        HEAD: "lm_head",
        NORM: f"{body}.final_norm",
        **_CLASSIFIER,
    }
    return Names({**whole, **more}, f"{body}.{layers}", parts)


_MLP = {"ffn_up": "intermediate.dense", "ffn_down": "output.dense", "layer_output_norm": "output.LayerNorm"}
_BERT = {
    "attn_q": "attention.self.query",
    "attn_k": "attention.self.key",
    "attn_v": "attention.self.value",
    "attn_output": "attention.output.dense",
    "attn_output_norm": "attention.output.LayerNorm",
    **_MLP,
}
_DISTILBERT = {
    **{f"attn_{part}": f"attention.{part}_lin" for part in "qkv"},
    "attn_output": "attention.out_lin",
    "attn_output_norm": "sa_layer_norm",
    "ffn_up": "ffn.lin1",
    "ffn_down": "ffn.lin2",
    "layer_output_norm": "output_layer_norm",
}
_MPNET = {
    **{f"attn_{part}": f"attention.attn.{part}" for part in "qkv"},
    "attn_output": "attention.attn.o",
    "attn_output_norm": "attention.LayerNorm",
    **_MLP,
}
_MODERN = {
    "attn_norm": "attn_norm",
    "attn_qkv": "attn.Wqkv",
    "attn_output": "attn.Wo",
    "ffn_norm": "mlp_norm",
    "ffn_down": "mlp.Wo",
}
_MODERN_WHOLE = {
    TOKENS: "model.embeddings.tok_embeddings",
    "token_embd_norm": "model.embeddings.norm",
    "head_dense": "head.dense",
    "head_norm": "head.norm",
    "classifier": "classifier",
}
_BERT_HEAD = {"head_dense": "bert.pooler.dense", "classifier": "classifier"}
_DISTILBERT_HEAD = {"head_dense": "pre_classifier", "classifier": "classifier"}
_DISTILBERT_KEYS = {
    "hidden_size": "dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim",
    "hidden_act": "activation",
}
_ROBERTA = Kind(_names("roberta", "encoder.layer", _BERT, {}), padding=True)
ENCODERS = {
    "bert": Kind(_names("bert", "encoder.layer", _BERT, _BERT_HEAD)),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "distilbert": Kind(
        _names("distilbert", "transformer.layer", _DISTILBERT, _DISTILBERT_HEAD),
        _DISTILBERT_KEYS,
        types=False,
        activation=RELU,
    ),
    "mpnet": Kind(
        _names("mpnet", "encoder.layer", _MPNET, {"relative_bias": "mpnet.encoder.relative_attention_bias"}),
        padding=True,
        types=False,
    ),
    "modernbert": Kind(
        replace(
            _names("model", "layers", _MODERN, _MODERN_WHOLE),
            halves={"ffn_gate": ("mlp.Wi", 0), "ffn_up": ("mlp.Wi", 1)},
        ),
        types=False,
        modern=True,
    ),
}


def read(path: Path, settings: Mapping[str, object]) -> Graph:
    """Return the network of a folder; `settings` is the object in its config.json.

    CorruptError for files that are damaged, UnsupportedError for networks and modules without a graph.
    """
    kind, v = ENCODERS[str(settings["model_type"])], Values(f"{path.name}/{FILE}", settings)
    v = Values(v.file, {**settings, **{key: settings.get(name) for key, name in kind.keys.items()}})
    architectures = v.find("architectures")
    names = list(map(str, cast("list[object]", architectures))) if isinstance(architectures, list) else []
    if names and not names[0].endswith((*HEADS, CLASSIFIER)):
        rule = "encoders that give vectors of tokens, or classify sequences, can be read"
        raise unsupported(v, rule, names[0], path)
    labels = _labels(v) if names and names[0].endswith(CLASSIFIER) else None
    config, shape = _config(v, kind), _shape(v, kind)
    vocab_size = v.integer("vocab_size", most=1 << 31)
    network = Network(config, Architecture(config.family, kind.names), True, vocab_size, shape.most, None, None)
    name = path.absolute().name
    graph = Graph(name=name, file=name)
    tensors = {_newer(key): tensor for key, tensor in read_tensors(path).items()}
    weights = FolderWeights(tensors, network, Builder(graph), name)
    head = None if labels is None else _head(v, kind, len(labels))
    pooling = _pooling(path) if head is None else _head_pooling(v, kind, path)
    Encoder(graph, config, weights, shape, head).build(vocab_size, pooling)
    body = kind.names.layers.partition(".")[0]
    unread = [n for n in weights.unread if n.startswith(f"{body}.") and not n.startswith(f"{body}.pooler.")]
    unread = [n for n in unread if not n.endswith(".position_ids")]
    if unread:
        rule = "all tensors of the encoder belong to the network"
        raise UnsupportedError(f"{name}: {rule}, got {len(unread)} others: {', '.join(map(repr, unread[:SHOWN]))}")
    graph.rt_info[FOLDER] = _texts(path, shape.most, labels)
    return graph


def _labels(v: Values) -> list[str]:
    """Return the names of the scores from `id2label`, or else made of their numbers as transformers does."""
    names_by_id = v.find("id2label")
    if names_by_id is None:
        return [f"LABEL_{n}" for n in range(v.integer("num_labels", 2))]
    labels = cast("dict[str, object]", names_by_id) if isinstance(names_by_id, dict) else {}
    if not labels or labels.keys() != set(map(str, range(len(labels)))):
        raise v.wrong("id2label", "a name for each number from 0", list(labels)[:SHOWN])
    return [str(labels[str(n)]) for n in range(len(labels))]


def _head(v: Values, kind: Kind, labels: int) -> Head:
    """Return the head of a classifier. Scores are as in sentence-transformers: one label has a sigmoid."""
    own = v.find("sentence_transformers")
    s = Values(v.file, cast("dict[str, object]", own) if isinstance(own, dict) else {})
    usual = v.find("sbert_ce_default_activation_function", SIGMOID if labels == 1 else IDENTITY)
    bounded = str(s.find("activation_fn", usual)).rpartition(".")[2]
    if bounded not in (SIGMOID, IDENTITY):
        raise UnsupportedError(f"{v.file}: scores by {SIGMOID} and {IDENTITY} can be read, got {bounded[:60]}")
    if not kind.modern:
        return Head(labels, kind.activation, bounded=bounded == SIGMOID)
    activation = activation_named(v, str(v.find("classifier_activation", "gelu")))
    return Head(labels, activation, normed=True, bounded=bounded == SIGMOID)


def _head_pooling(v: Values, kind: Kind, folder: Path) -> Pooling:
    """Return the pooling before the head: a modules.json, which says another one, must name the network alone."""
    if _pooling(folder) != Pooling():
        rule = "classifiers without modules of their own can be read"
        raise UnsupportedError(f"{folder.name}/{MODULES}: {rule}, got Pooling or Normalize")
    pooling = str(v.find("classifier_pooling", CLS)) if kind.modern else CLS
    if pooling not in (CLS, MEAN):
        raise v.wrong("classifier_pooling", f"{CLS} or {MEAN}", pooling)
    return Pooling((pooling,))


def _newer(name: str) -> str:
    """Return today's name of a tensor: the first BERTs have a gamma and a beta."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def _config(v: Values, kind: Kind) -> Config:
    width, heads = v.integer("hidden_size"), v.integer("num_attention_heads")
    layers, key = v.integer("num_hidden_layers", most=MAX_LAYERS), max(width // heads, 1)
    if width % heads:
        raise v.wrong("hidden_size", f"a multiple of {heads} heads", width)
    if v.find("position_embedding_type", "absolute") != "absolute":
        rule = "positions of type absolute can be read"
        raise UnsupportedError(f"{v.file}: {rule}, got {str(v.find('position_embedding_type'))[:60]}")
    rates = {part: _rate(v, part) for part in (GLOBAL, LOCAL)} if kind.modern else {GLOBAL: 1e4, LOCAL: 1e4}
    return Config(
        family=Family(centred=True, gated=kind.modern, learned=not kind.modern),
        layers=layers,
        width=width,
        inner=v.integer("intermediate_size", most=1 << 24),
        heads=heads,
        key_heads=heads,
        key=key,
        value=key,
        rotated=key if kind.modern else 0,
        epsilon=v.real("norm_eps", 1e-5) if kind.modern else v.real("layer_norm_eps", 1e-12),
        base=rates[GLOBAL],
        local_base=rates[LOCAL],
        stretch=1.0,
        window=v.integer("local_attention", 128, 2) // 2 if kind.modern else ALL_TOKENS,
        local=_local(v, layers) if kind.modern else (False,) * layers,
        activation=activation_named(v, str(v.find("hidden_activation", v.find("hidden_act", "gelu")))),
    )


def _rate(v: Values, part: str) -> float:
    """Return the base of the rotations of layers that see all tokens, or a window of them."""
    usual = v.real("global_rope_theta", 160000.0) if part == GLOBAL else v.real("local_rope_theta", 10000.0)
    rope_parameters = v.find("rope_parameters")
    own = cast("dict[str, object]", rope_parameters).get(part) if isinstance(rope_parameters, dict) else None
    r = Values(v.file, cast("dict[str, object]", own) if isinstance(own, dict) else {})
    if r.find("rope_type", "default") != "default" or v.find("rope_scaling") is not None:
        raise UnsupportedError(f"{v.file}: rotations of type default can be read, got another type")
    return r.real("rope_theta", usual)


def _local(v: Values, layers: int) -> tuple[bool, ...]:
    global_step, layer_types = v.integer("global_attn_every_n_layers", 3), v.find("layer_types")
    if layer_types is None:
        return tuple(n % global_step != 0 for n in range(layers))
    types = cast("list[object]", layer_types) if isinstance(layer_types, list) else []
    if len(types) != layers or any(one not in (LOCAL, GLOBAL) for one in types):
        raise v.wrong("layer_types", f"{LOCAL} or {GLOBAL} for each of {layers} layers", types)
    return tuple(one == LOCAL for one in types)


def _shape(v: Values, kind: Kind) -> Shape:
    max_positions = v.integer("max_position_embeddings", 8192 if kind.modern else 512, 4)
    padding = v.integer("pad_token_id", 1, 0, max_positions - 2) if kind.padding else None
    buckets = v.integer("relative_attention_num_buckets", 32, 8) if "relative_bias" in kind.names.whole else 0
    return Shape(
        most=max_positions if padding is None else max_positions - padding - 1,
        places=0 if kind.modern else max_positions,
        padding=padding,
        types=v.integer("type_vocab_size", 2) if kind.types else 0,
        buckets=buckets,
        before=kind.modern,
    )


def _pooling(folder: Path) -> Pooling:
    """Return the pooling that modules.json and its modules say; without one, the mean as sentence-transformers does."""
    path = folder / MODULES
    if not path.is_file():
        return Pooling()
    kinds, normalised = (MEAN,), False
    for number, module in enumerate(read_list(path)):
        facts: Mapping[str, object] = cast("Mapping[str, object]", module) if isinstance(module, dict) else {}
        kind, module_folder = str(facts.get("type")).rpartition(".")[2], str(facts.get("path"))
        if number == 0 and kind == "Transformer" and module_folder in ("", "."):
            continue
        if kind == "Pooling" and number == 1 and Path(module_folder).name == module_folder:
            kinds = _kinds(Values(f"{module_folder}/{FILE}", read_json(folder / module_folder / FILE)))
        elif kind == "Normalize":
            normalised = True
        else:
            rule = "modules Transformer (of the folder), Pooling and Normalize can be read"
            raise UnsupportedError(f"{folder.name}/{MODULES}: {rule}, got {kind[:40]} of {module_folder[:40]!r}")
    return Pooling(kinds, normalised)


def _kinds(v: Values) -> tuple[str, ...]:
    mode = v.find("pooling_mode")
    named = [mode] if isinstance(mode, str) else cast("list[object]", mode) if isinstance(mode, list) else []
    names = [str(name) for name in named]
    names += [
        MODES.get(key, key) for key, value in v.metadata.items() if key.startswith("pooling_mode_") and value is True
    ]
    if not names or not set(names) <= {CLS, MOST, MEAN}:
        rule = f"pooling by {CLS}, {MOST} and {MEAN} can be read"
        raise UnsupportedError(f"{v.file}: {rule}, got {', '.join(names)[:80]}")
    return tuple(names)


def _texts(folder: Path, most: int, labels: list[str] | None) -> dict[str, str]:
    """Return the tokenizer, which cuts texts at the most tokens and fills up none, that number, and the labels."""
    if not (folder / TOKENIZER).is_file():
        return {}
    s = _settings(folder, SENTENCES)
    most = min(most, s.integer("max_seq_length", most, 2))
    bound = _settings(folder, SETTINGS).find("model_max_length") if labels else None
    most = min(most, bound) if isinstance(bound, int) and bound >= LEAST_PAIR else most
    if s.find("do_lower_case") is True:
        raise UnsupportedError(f"{s.file}: texts as they are can be read, got do_lower_case")
    p = _settings(folder, PROMPTS)
    if p.find("default_prompt_name") is not None:
        raise UnsupportedError(f"{p.file}: texts without a prompt can be read, got default_prompt_name")
    cut = {"direction": "Right", "max_length": most, "strategy": "LongestFirst", "stride": 0}
    tokenizer = {**read_json(folder / TOKENIZER), "truncation": cut, "padding": None}
    named = {} if labels is None else {LABELS: json.dumps(labels)}
    return {TOKENIZER: json.dumps(tokenizer, ensure_ascii=False), CONTEXT_LENGTH: json.dumps(most), **named}


def _settings(folder: Path, name: str) -> Values:
    return Values(f"{folder.name}/{name}", read_json(folder / name) if (folder / name).is_file() else {})
