"""KerasHub's backbones with random weights and small sizes, as SavedModels of `model.export`.

Needs tensorflow and keras-hub.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.exports import keras_networks
from benchmarks.exports.keras_networks import judged

TOKENS = 7
WORDS = 40
SMALL: dict[str, Any] = {"num_layers": 2, "hidden_dim": 32, "intermediate_dim": 48}
TEXT: dict[str, Any] = {"vocabulary_size": WORDS, "num_heads": 4, **SMALL}
LIMITED: dict[str, Any] = {**TEXT, "max_sequence_length": 16}
GROUPED: dict[str, Any] = {"vocabulary_size": WORDS, "num_query_heads": 4, "num_key_value_heads": 2, **SMALL}
SQUARE: dict[str, Any] = {"image_shape": (32, 32, 3)}
MIX: dict[str, Any] = {
    "layerwise_num_heads": [1, 2],
    "layerwise_sr_ratios": [2, 1],
    "layerwise_patch_sizes": [7, 3],
    "layerwise_strides": [4, 2],
    "layerwise_depths": [1, 1],
    "num_layers": 2,
    "hidden_dims": [8, 16],
    "max_drop_path_rate": 0.1,
    **SQUARE,
}
RESIDUAL: dict[str, Any] = {
    "input_conv_filters": [64],
    "input_conv_kernel_sizes": [7],
    "stackwise_num_filters": [64, 96],
    "stackwise_num_blocks": [1, 1],
    "stackwise_num_strides": [1, 2],
    **SQUARE,
}
NETWORKS: dict[str, dict[str, Any]] = {
    "BertBackbone": LIMITED,
    "DistilBertBackbone": LIMITED,
    "RobertaBackbone": LIMITED,
    "AlbertBackbone": {**LIMITED, "embedding_dim": 8},
    "ElectraBackbone": {
        **{k: v for k, v in LIMITED.items() if k != "vocabulary_size"},
        "vocab_size": WORDS,
        "embedding_dim": 8,
    },
    "DebertaV3Backbone": {**LIMITED, "bucket_size": 4},
    "FNetBackbone": {"vocabulary_size": WORDS, "max_sequence_length": TOKENS, **SMALL},
    "XLNetBackbone": TEXT,
    "RoformerV2Backbone": {**TEXT, "head_size": 8},
    "GPT2Backbone": LIMITED,
    "GPTNeoXBackbone": LIMITED,
    "OPTBackbone": LIMITED,
    "BloomBackbone": TEXT,
    "LlamaBackbone": GROUPED,
    "MistralBackbone": {**GROUPED, "sliding_window": 4},
    "GemmaBackbone": {**GROUPED, "head_dim": 8},
    "QwenBackbone": GROUPED,
    "Phi3Backbone": GROUPED,
    "T5Backbone": TEXT,
    "BartBackbone": LIMITED,
    "ViTBackbone": {"patch_size": (8, 8), "num_layers": 2, "num_heads": 4, "hidden_dim": 32, "mlp_dim": 48, **SQUARE},
    "DeiTBackbone": {"patch_size": 8, "num_heads": 4, **SMALL, **SQUARE},
    "ResNetBackbone": {**RESIDUAL, "block_type": "basic_block"},
    "DenseNetBackbone": {"stackwise_num_repeats": [2, 2], "growth_rate": 4, **SQUARE},
    "VGGBackbone": {"stackwise_num_repeats": [1, 2], "stackwise_num_filters": [8, 16], **SQUARE},
    "MiTBackbone": MIX,
    "SegFormerBackbone": {"image_encoder": MIX, "projection_filters": 16},
    "SwinTransformerBackbone": {"embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4, **SQUARE},
}


def load() -> None:
    keras_networks.load()


def names() -> list[str]:
    return list(NETWORKS)


def verdict(name: str, references: bool = False) -> tuple[str, str]:
    """Return the outcome for a backbone, and the largest difference or the error."""
    import keras  # noqa: PLC0415
    import keras_hub  # noqa: PLC0415

    keras.utils.set_random_seed(7)
    try:
        settings = dict(NETWORKS[name])
        if "image_encoder" in settings:
            settings["image_encoder"] = keras_hub.models.MiTBackbone(**settings["image_encoder"])
        model = getattr(keras_hub.models, name)(**settings)
        inputs = given(model.input)
        model(inputs, training=False)
    except Exception as error:  # of many kinds: what is small may not fit a network
        return "not built", f"{type(error).__name__}: {str(error)[:300]}"
    return judged(model, inputs, references)


def given(wanted: Any) -> Any:
    """Return numbers for an input, or for each of a dictionary's: a picture, tokens, segments, a mask."""
    if isinstance(wanted, dict):
        return {name: numbers(name, tensor) for name, tensor in wanted.items()}
    return numbers("images", wanted)


def numbers(name: str, wanted: Any) -> np.ndarray:
    random = np.random.default_rng(7)
    shape = tuple(size or (2, TOKENS)[axis] for axis, size in enumerate(wanted.shape))
    if "float" in str(wanted.dtype):
        return random.uniform(-1, 1, shape).astype(np.float32)
    if "mask" in name:
        return (np.arange(shape[1]) < [[shape[1]], [shape[1] - 2]]).astype(wanted.dtype)
    return random.integers(0, 2 if "segment" in name else WORDS, shape).astype(wanted.dtype)
