"""Networks of transformers: each model type that has a base model, with a small configuration. Needs transformers."""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import Any

# Sizes of configurations by name; a configuration gets those that it has. The first ones win where one means another.
SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "d_model": 32,
    "n_embd": 32,
    "embed_dim": 32,
    "dim": 32,
    "projection_dim": 32,
    "embedding_size": 32,
    "num_hidden_layers": 2,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "n_layer": 2,
    "n_layers": 2,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "num_encoder_layers": 2,
    "num_attention_heads": 4,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "n_head": 4,
    "n_heads": 4,
    "num_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "d_kv": 8,
    "intermediate_size": 48,
    "moe_intermediate_size": 48,
    "shared_expert_intermediate_size": 48,
    "ffn_dim": 48,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "d_ff": 48,
    "n_inner": 48,
    "vocab_size": 99,
    "max_position_embeddings": 64,
    "n_positions": 64,
    "max_source_positions": 50,
    "max_target_positions": 50,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "type_vocab_size": 4,
    "image_size": 32,
    "patch_size": 8,
    "num_channels": 3,
    "num_mel_bins": 16,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "word_embed_proj_dim": 32,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "state_size": 8,
    "attention_hidden_size": 32,
    "rotary_dim": 4,
    "mamba_n_heads": 4,
    "mamba_d_head": 16,
    "n_groups": 1,
    "attn_layer_period": 2,
    "attn_layer_offset": 1,
    "num_labels": 3,
}
DERIVED = ("head_dim", "num_key_value_heads")  # None in a configuration whose model takes a number from checkpoints
TOKENS, SIDE, SAMPLES = 7, 32, 4000
WINDOWS = {"image_size": 56, "patch_size": 4, "depths": [1, 1], "num_heads": [2, 4], "embed_dim": 16}
STAGES = {"image_size": 64, "patch_size": 4, "num_stages": 4}
# HGNet with one layer a stage: normalised with its own statistics, a deep one stretches roundings to 1e-3.
DETECTOR = {
    "num_queries": 5,
    "image_size": 64,
    "backbone_config.stage_num_blocks": [1] * 4,
    "backbone_config.stage_numb_of_layers": [1] * 4,
}
RESIDUAL_DETECTOR = {"num_queries": 5, "image_size": 64, "backbone_config.depths": [1] * 4}
# Numbers of a head that turn with time, height and width.
TURNS = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 1, 1]}}
SERIES = {"context_length": 32, "patch_length": 8, "patch_stride": 8, "num_input_channels": 3}
EXPERTS = {"num_experts_per_tok": 2, "n_routed_experts": 4, "n_group": 1, "topk_group": 1}
# By model type, what must fit other sizes: set after the others, also in a configuration inside.
BY_TYPE: dict[str, dict[str, Any]] = {
    "align": {"projection_dim": 640},
    "axk1": EXPERTS,
    "bros": {"dim_bbox_projection": 8},
    "convnext": STAGES,
    "convnextv2": STAGES,
    "d_fine": DETECTOR,
    "deepseek_v2": EXPERTS,
    "deformable_detr": {"image_size": 128},
    "deimv2": DETECTOR,
    "donut-swin": WINDOWS,
    "dots1": EXPERTS | {"n_shared_experts": 1},
    "encodec": {"codebook_dim": 32},
    "esm": {"pad_token_id": 1, "mask_token_id": 32},
    "esmc": {"num_key_value_heads": 4},
    "gemma3n_text": {"num_kv_shared_layers": 0},
    "glm4v_text": TURNS,
    "glm_ocr_text": TURNS,
    "layoutlmv3": {"coordinate_size": 6, "shape_size": 4},
    "levit": {"image_size": 64, "patch_size": 16, "depths": [1, 1, 1]},
    "lilt": {"hidden_size": 48},
    "mobilevit": {"image_size": 128},
    "mobilevitv2": {"image_size": 128, "patch_size": 2},
    "patchtsmixer": SERIES,
    "patchtst": SERIES,
    "qwen2_5_vl_text": TURNS,
    "qwen2_vl_text": TURNS,
    "recurrent_gemma": {"num_hidden_layers": 3},
    "reformer": {"axial_pos_embds_dim": (16, 16), "axial_pos_shape": (8, 8)},
    "rt_detr": RESIDUAL_DETECTOR,
    "rt_detr_v2": RESIDUAL_DETECTOR,
    "siglip": {"text_config.projection_size": 32},
    "speech_to_text": {"input_feat_per_channel": 16, "conv_channels": 32},
    "swin": WINDOWS,
    "swin2sr": WINDOWS | {"image_size": 16, "patch_size": 1, "window_size": 4, "num_heads": [2, 2]},
    "swinv2": WINDOWS,
    "timesformer": {"num_frames": 4},
    "videomae": {"num_frames": 4},
    "vivit": {"num_frames": 4, "tubelet_size": [2, 8, 8]},
    "wav2vec2-bert": {"feature_projection_input_dim": 16},
    "xmod": {"default_language": "en_XX"},
}


def load() -> None:
    """Import what all networks need, once: each has a process that is a fork of this one."""
    import torch  # noqa: F401, PLC0415
    from transformers import AutoModel, BertModel, MixtralModel  # noqa: F401, PLC0415

    import aot.frontends.pt2.convert  # noqa: F401, PLC0415


def names() -> list[str]:
    """Return the model types that have a base model."""
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES  # noqa: PLC0415

    return sorted(MODEL_MAPPING_NAMES)


def shrink(config: Any) -> Any:
    """Make a configuration small, and those inside of it; return it."""
    for name, value in SMALL.items():
        with suppress(Exception):  # of many kinds: what follows from others, or differs from layer to layer
            if type(getattr(config, name, None)) is int or (name in DERIVED and getattr(config, name, 0) is None):
                setattr(config, name, value)
    for value in list(vars(config).values()):
        if hasattr(value, "to_dict") and value is not config:
            shrink(value)
    with suppress(AttributeError):
        if getattr(config, "layer_types", None):
            config.layer_types = _kinds(list(config.layer_types))
    if hasattr(config, "attn_layer_indices"):
        config.attn_layer_indices = [1]
    if getattr(config, "kv_lora_rank", None):  # keys are made of a latent vector for all heads
        config.num_key_value_heads = config.num_attention_heads
    if getattr(config, "model_type", "") == "mamba2":
        config.expand = 1  # heads times their size are those of the hidden state
    heads = getattr(config, "num_heads", None)
    if isinstance(heads, list | tuple) and type(getattr(config, "embed_dim", None)) is int:
        config.embed_dim = 8 * heads[0]
    if hasattr(config, "vocab_size") and config.vocab_size is None:
        config.vocab_size = SMALL["vocab_size"]
    return config


def _kinds(layers: list[Any]) -> list[Any]:
    """Return the kinds of the first two layers, or the first ones of two kinds where the others differ."""
    return [*dict.fromkeys(layers)][:2] if len(set(layers)) > 1 else layers[:2]


def network(name: str) -> tuple[Any, dict[str, Any]]:
    """Return a model of a type, in evaluation, and arguments for it."""
    from transformers import AutoConfig, AutoModel  # noqa: PLC0415

    from benchmarks.pytorch.network import draw_silent_weights, set_statistics  # noqa: PLC0415

    config = shrink(AutoConfig.for_model(name))
    for path, value in BY_TYPE.get(name, {}).items():
        inside, _, field = path.rpartition(".")
        setattr(getattr(config, inside) if inside else config, field, value)
    module = AutoModel.from_config(config).eval()
    draw_silent_weights(module)
    given = inputs(module, config)
    set_statistics(module, given)
    return module, given


def inputs(module: Any, config: Any) -> dict[str, Any]:
    """Return the arguments by name: the main input of a model, and those that stand beside it."""
    import torch  # noqa: PLC0415

    taken, tokens = inspect.signature(module.forward).parameters, torch.arange(3, 3 + TOKENS)[None]
    main = module.main_input_name if module.main_input_name in taken else "pixel_values"
    mels = getattr(config, "num_mel_bins", None) or getattr(config, "num_mel_channels", 16)
    seen = getattr(config, "vision_config", None) or config
    side = getattr(seen, "image_size", SIDE)
    size = tuple(side) if isinstance(side, list | tuple) else (side, side)
    frames = getattr(config, "max_length", None)
    made: dict[str, Any] = {
        "input_ids": tokens,
        "pixel_values": torch.randn(1, getattr(seen, "num_channels", 3), *size),
        "input_values": torch.randn(1, frames, mels)
        if frames and hasattr(config, "num_mel_bins")
        else torch.randn(1, SAMPLES),
        "input_features": torch.randn(1, mels, 2 * getattr(config, "max_source_positions", 50)),
    }
    if config.model_type in ("dac", "encodec"):  # sounds of one channel
        made["input_values"] = made["input_values"][:, None]
    if hasattr(config, "context_length"):
        made["past_values"] = torch.randn(1, config.context_length, config.num_input_channels)
    if hasattr(config, "num_frames"):
        made["pixel_values"] = made["pixel_values"][:, None] + torch.randn(config.num_frames, 1, 1, 1)
    if config.model_type in ("canary", "cohere_asr", "parakeet_encoder", "speech_to_text", "wav2vec2-bert"):
        made["input_features"] = made["input_features"].transpose(1, 2)
    given = {main: made[main]}
    if config.model_type == "bros":
        given["bbox"] = torch.rand(1, TOKENS, 4)
    if main == "input_ids":
        given["attention_mask"] = torch.ones_like(tokens)
    if not hasattr(config, "image_token_id"):  # else a picture stands in the text
        is_pair = hasattr(config, "text_config") or config.model_type == "vilt"
        beside = [name for name in ("pixel_values", "input_ids") if name in taken and is_pair]
        given |= {name: made[name] for name in beside}
    if getattr(config, "is_encoder_decoder", False):
        given["decoder_input_ids"] = tokens[:, :4]
    return given
