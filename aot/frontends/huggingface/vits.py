"""Networks that speak in folders of Hugging Face: VITS, as the models of MMS are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import numpy as np

from aot.frontends.huggingface.config import FILE, unsupported
from aot.frontends.huggingface.container import Stored, read_json, read_tensors
from aot.frontends.language.config import MAX_LAYERS, Values
from aot.frontends.language.vits.layers import VitsConfig
from aot.frontends.language.vits.network import Vits
from aot.ir.graph import Graph
from aot.ir.types import Array
from aot.runtime.errors import CorruptError, UnsupportedError
from aot.speech.speaking import voice_in
from aot.text.library_texts import FOLDER, SETTINGS, VOICE

TYPE, VOCABULARY = "vits", "vocab.json"
# Settings of tokenizer_config.json and of config.json that say how texts are read and spoken.
OF_TOKENIZER = ("add_blank", "normalize", "language", "phonemize", "is_uroman", "unk_token")
OF_NETWORK = ("sampling_rate", "noise_scale", "noise_scale_duration", "speaking_rate", "num_speakers")
TRAINING = ("posterior_encoder.", "duration_predictor.post_", "duration_predictor.flows.1.")  # tensors of it alone
SHOWN = 5  # names in an error
NORMED = (  # names of the length and the direction of a weight-normalised layer
    (".parametrizations.weight.original0", ".parametrizations.weight.original1"),
    ("_g", "_v"),
)
MAX_FLOWS, MAX_KERNEL = 64, 1 << 10


def read(path: Path, config: Mapping[str, object]) -> Graph:
    """Return the network of a folder; `config` is the object in its config.json.

    CorruptError for files that are damaged, UnsupportedError for networks without a graph.
    """
    v, name = Values(f"{path.name}/{FILE}", config), path.absolute().name
    if str(v.find("hidden_act", "relu")) != "relu":
        raise unsupported(v, "VITS with hidden_act relu can be read", str(v.find("hidden_act")), path)
    graph = Graph(name=name, file=name)
    tensors = VitsTensors(read_tensors(path), name)
    Vits(graph, config_of(v), tensors).build()
    if unread := [key for key in tensors.tensors if key not in tensors.read and not key.startswith(TRAINING)]:
        names = ", ".join(map(repr, unread[:SHOWN]))
        raise UnsupportedError(f"{name}: all tensors belong to the network, got {len(unread)} others: {names}")
    if (path / VOCABULARY).is_file():
        graph.rt_info[FOLDER] = {VOICE: _voice(path, v)}
    return graph


def _voice(folder: Path, v: Values) -> str:
    """Return the characters and settings of the voice as JSON; CorruptError for wrong ones."""
    settings = read_json(folder / SETTINGS) if (folder / SETTINGS).is_file() else {}
    metadata = {key: settings[key] for key in OF_TOKENIZER if key in settings}
    metadata |= {key: v.metadata[key] for key in OF_NETWORK if key in v.metadata}
    metadata["vocab"] = read_json(folder / VOCABULARY)
    _ = voice_in(Values(folder.name, metadata))
    return json.dumps(metadata)


class VitsTensors:
    """The tensors of a folder, by its names."""

    def __init__(self, tensors: dict[str, Stored], file: str) -> None:
        self.tensors, self.file, self.read = tensors, file, set[str]()

    def has(self, name: str) -> bool:
        return name in self.tensors

    def floats(self, name: str, *shape: int) -> Array:
        """Return a tensor as f32; of a weight-normalised layer, length times direction. CorruptError without one."""
        base = name.removesuffix(".weight")
        for length, direction in NORMED if name.endswith(".weight") else ():
            names = [f"{base}{end}" if end[0] == "." else f"{base}.weight{end}" for end in (length, direction)]
            if names[0] in self.tensors:
                g, v = self._stored(names[0], (shape[0], *[1] * (len(shape) - 1))), self._stored(names[1], shape)
                axes = tuple(range(1, len(shape)))
                return g * v / np.sqrt(np.square(v, dtype=np.float64).sum(axes, keepdims=True)).astype(np.float32)
        return self._stored(name, shape)

    def _stored(self, name: str, shape: tuple[int, ...]) -> Array:
        stored = self.tensors.get(name)
        if stored is None:
            raise CorruptError(f"{self.file}: the network must have a tensor {name!r}, got {len(self.tensors)} others")
        if stored.shape != shape:
            raise CorruptError(f"{self.file}: tensor {name!r} must be {list(shape)}, got {list(stored.shape)}")
        self.read.add(name)
        return stored.array.astype(np.float32)


def config_of(v: Values) -> VitsConfig:
    """Return the sizes that a config.json says; CorruptError for values of another type or range."""
    speakers = v.integer("num_speakers", 1)
    config = VitsConfig(
        vocab_size=v.integer("vocab_size", 38),
        hidden_size=v.integer("hidden_size", 192),
        num_hidden_layers=v.integer("num_hidden_layers", 6, most=MAX_LAYERS),
        num_attention_heads=v.integer("num_attention_heads", 2),
        window_size=v.integer("window_size", 4, most=MAX_KERNEL),
        ffn_dim=v.integer("ffn_dim", 768),
        ffn_kernel_size=v.integer("ffn_kernel_size", 3, most=MAX_KERNEL),
        flow_size=v.integer("flow_size", 192),
        layer_norm_eps=v.real("layer_norm_eps", 1e-5),
        use_stochastic_duration_prediction=v.find("use_stochastic_duration_prediction", True) is True,
        duration_predictor_num_flows=v.integer("duration_predictor_num_flows", 4, 1, MAX_FLOWS),
        duration_predictor_flow_bins=v.integer("duration_predictor_flow_bins", 10, 2, MAX_KERNEL),
        duration_predictor_tail_bound=v.real("duration_predictor_tail_bound", 5.0),
        duration_predictor_kernel_size=v.integer("duration_predictor_kernel_size", 3, most=MAX_KERNEL),
        duration_predictor_filter_channels=v.integer("duration_predictor_filter_channels", 256),
        depth_separable_num_layers=v.integer("depth_separable_num_layers", 3, 1, 8),
        prior_encoder_num_flows=v.integer("prior_encoder_num_flows", 4, 1, MAX_FLOWS),
        prior_encoder_num_wavenet_layers=v.integer("prior_encoder_num_wavenet_layers", 4, 1, MAX_FLOWS),
        wavenet_kernel_size=v.integer("wavenet_kernel_size", 5, most=MAX_KERNEL),
        wavenet_dilation_rate=v.integer("wavenet_dilation_rate", 1, 1, 8),
        upsample_initial_channel=v.integer("upsample_initial_channel", 512),
        upsample_rates=_sizes(v, "upsample_rates", (8, 8, 2, 2)),
        upsample_kernel_sizes=_sizes(v, "upsample_kernel_sizes", (16, 16, 4, 4)),
        resblock_kernel_sizes=_sizes(v, "resblock_kernel_sizes", (3, 7, 11)),
        resblock_dilation_sizes=_lists(v, "resblock_dilation_sizes", ((1, 3, 5),) * 3),
        leaky_relu_slope=v.real("leaky_relu_slope", 0.1),
        num_speakers=speakers,
        speaker_embedding_size=v.integer("speaker_embedding_size", 0, 1 if speakers > 1 else 0),
    )
    _check_sizes(v, config)
    return config


def _check_sizes(v: Values, config: VitsConfig) -> None:
    """Refuse sizes that do not fit each other."""
    heads, rates, kernels = config.num_attention_heads, config.upsample_rates, config.upsample_kernel_sizes
    fits = len(kernels) == len(rates) and all(k >= r and (k - r) % 2 == 0 for k, r in zip(kernels, rates, strict=True))
    blocks, dilations = config.resblock_kernel_sizes, config.resblock_dilation_sizes
    width, flow, channels = config.hidden_size, config.flow_size, config.upsample_initial_channel
    checks = {
        "hidden_size": (width % heads == 0, f"a multiple of {heads} heads", width),
        "flow_size": (flow % 2 == 0, "even", flow),
        "upsample_kernel_sizes": (fits, "as many as upsample_rates, and greater by even numbers", kernels),
        "resblock_dilation_sizes": (len(dilations) == len(blocks), f"{len(blocks)} lists", dilations),
        "upsample_initial_channel": (channels % (1 << len(rates)) == 0, f"a multiple of {1 << len(rates)}", channels),
    }
    for key, (good, rule, got) in checks.items():
        if not good:
            raise v.wrong(key, rule, got)


def _sizes(v: Values, key: str, default: tuple[int, ...]) -> tuple[int, ...]:
    return _checked(v, key, v.find(key, list(default)))


def _lists(v: Values, key: str, default: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    rows_of_sizes = v.find(key, [list(row) for row in default])
    rows = cast("list[object]", rows_of_sizes) if isinstance(rows_of_sizes, list) else [rows_of_sizes]
    return tuple(_checked(v, key, row) for row in rows)


def _checked(v: Values, key: str, value: object) -> tuple[int, ...]:
    sizes = cast("list[object]", value) if isinstance(value, list) else []
    if not sizes or not all(type(n) is int and 1 <= n <= MAX_KERNEL for n in sizes):
        raise v.wrong(key, f"a list of sizes from 1 to {MAX_KERNEL}", value)
    return tuple(cast("list[int]", sizes))
