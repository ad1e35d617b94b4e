"""Networks of diffusers with small configurations and random weights. Needs diffusers."""

from __future__ import annotations

from typing import Any

import diffusers
import torch

from benchmarks.pytorch.network import draw_silent_weights

DOWN, UP = ("DownBlock2D", "AttnDownBlock2D"), ("AttnUpBlock2D", "UpBlock2D")
CROSS_DOWN, CROSS_UP = ("CrossAttnDownBlock2D", "DownBlock2D"), ("UpBlock2D", "CrossAttnUpBlock2D")
PICTURE, LATENT, TEXT, STEP = (1, 3, 32, 32), (1, 4, 8, 8), (1, 7, 32), torch.tensor([10])
WIDTHS: dict[str, Any] = {"block_out_channels": (32, 64), "norm_num_groups": 8}
U_NET: dict[str, Any] = WIDTHS | {"sample_size": 8, "layers_per_block": 1}
CONDITION: dict[str, Any] = U_NET | {"down_block_types": CROSS_DOWN, "cross_attention_dim": 32, "attention_head_dim": 8}
SMALL: dict[str, Any] = {"num_layers": 1, "num_attention_heads": 2, "attention_head_dim": 16}
LATENTS: dict[str, Any] = {"sample_size": 8, "in_channels": 4, "patch_size": 2}
ENCODED: dict[str, Any] = {"hidden_states": LATENT, "encoder_hidden_states": TEXT, "timestep": STEP}
VIDEO: dict[str, Any] = {"hidden_states": (1, 4, 3, 8, 8), "encoder_hidden_states": TEXT, "timestep": STEP}

# Class: its configuration, and its arguments: shapes of random numbers, or values.
NETWORKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "UNet2DModel": (
        U_NET | {"sample_size": 32, "down_block_types": DOWN, "up_block_types": UP},
        {"sample": PICTURE, "timestep": STEP},
    ),
    "UNet2DConditionModel": (
        CONDITION | {"up_block_types": CROSS_UP},
        {"sample": LATENT, "timestep": STEP, "encoder_hidden_states": TEXT},
    ),
    "UNet1DModel": (
        {
            "block_out_channels": (32, 32, 64),
            "sample_size": 256,
            "in_channels": 2,
            "out_channels": 2,
            "extra_in_channels": 64,  # sines and cosines of 32 frequencies of the step
        },
        {"sample": (1, 2, 256), "timestep": STEP},
    ),
    "UNet3DConditionModel": (
        CONDITION
        | {"down_block_types": ("CrossAttnDownBlock3D", "DownBlock3D")}
        | {"up_block_types": ("UpBlock3D", "CrossAttnUpBlock3D")},
        {"sample": (1, 4, 3, 8, 8), "timestep": STEP, "encoder_hidden_states": TEXT},
    ),
    "UNetSpatioTemporalConditionModel": (
        {
            "block_out_channels": (32, 64),
            "sample_size": 8,
            "layers_per_block": 1,
            "down_block_types": ("CrossAttnDownBlockSpatioTemporal", "DownBlockSpatioTemporal"),
            "up_block_types": ("UpBlockSpatioTemporal", "CrossAttnUpBlockSpatioTemporal"),
            "cross_attention_dim": 32,
            "num_attention_heads": (2, 4),
            "addition_time_embed_dim": 8,
            "projection_class_embeddings_input_dim": 24,
        },
        {
            "sample": (1, 2, 8, 8, 8),
            "timestep": STEP,
            "encoder_hidden_states": (1, 1, 32),
            "added_time_ids": torch.tensor([[6.0, 127.0, 0.02]]),
        },
    ),
    "ControlNetModel": (
        {k: v for k, v in CONDITION.items() if k != "sample_size"} | {"conditioning_embedding_out_channels": (8, 16)},
        {"sample": LATENT, "timestep": STEP, "encoder_hidden_states": TEXT, "controlnet_cond": (1, 3, 16, 16)},
    ),
    "UVit2DModel": (
        {
            "hidden_size": 32,
            "cond_embed_dim": 32,
            "micro_cond_encode_dim": 8,
            "micro_cond_embed_dim": 40,
            "encoder_hidden_size": 32,
            "vocab_size": 32,
            "codebook_size": 24,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "in_channels": 16,
            "block_out_channels": 16,
            "block_num_heads": 2,
            "intermediate_size": 48,
            "sample_size": 8,
        },
        {
            "input_ids": torch.arange(64).reshape(1, 8, 8) % 24,
            "encoder_hidden_states": TEXT,
            "pooled_text_emb": (1, 32),
            "micro_conds": torch.tensor([[64.0, 64.0, 0.0, 0.0, 6.0]]),
        },
    ),
    "AutoencoderKL": (
        WIDTHS | {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2},
        {"sample": PICTURE},
    ),
    "AsymmetricAutoencoderKL": (
        {
            "down_block_out_channels": (32, 64),
            "up_block_out_channels": (32, 64),
            "down_block_types": ("DownEncoderBlock2D",) * 2,
            "up_block_types": ("UpDecoderBlock2D",) * 2,
            "norm_num_groups": 8,
        },
        {"sample": PICTURE},
    ),
    "AutoencoderTiny": (
        {
            "encoder_block_out_channels": (16, 16),
            "decoder_block_out_channels": (16, 16),
            "num_encoder_blocks": (1, 2),
            "num_decoder_blocks": (2, 1),
        },
        {"sample": PICTURE},
    ),
    "VQModel": (
        WIDTHS
        | {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
        | {"num_vq_embeddings": 24, "latent_channels": 4},
        {"sample": PICTURE},
    ),
    "AutoencoderDC": (
        {
            "latent_channels": 4,
            "attention_head_dim": 8,
            "encoder_block_types": ("ResBlock", "EfficientViTBlock"),
            "decoder_block_types": ("ResBlock", "EfficientViTBlock"),
            "encoder_block_out_channels": (16, 32),
            "decoder_block_out_channels": (16, 32),
            "encoder_qkv_multiscales": ((), (5,)),
            "decoder_qkv_multiscales": ((), (5,)),
            "encoder_layers_per_block": (1, 1),
            "decoder_layers_per_block": (1, 1),
            "downsample_block_type": "conv",
            "decoder_norm_types": "rms_norm",
            "decoder_act_fns": "silu",
        },
        {"sample": PICTURE},
    ),
    "AutoencoderOobleck": (
        {
            "encoder_hidden_size": 16,
            "downsampling_ratios": [2, 4],
            "channel_multiples": [1, 2],
            "decoder_channels": 16,
            "decoder_input_channels": 8,
        },
        {"sample": (1, 2, 256)},
    ),
    "AutoencoderKLWan": (
        {"base_dim": 8, "z_dim": 4, "dim_mult": [1, 2], "num_res_blocks": 1, "temperal_downsample": [True]}
        | {"latents_mean": [0.0] * 4, "latents_std": [1.0] * 4},
        {"sample": (1, 3, 5, 16, 16)},
    ),
    "Transformer2DModel": (
        LATENTS | SMALL | {"num_embeds_ada_norm": 20, "norm_type": "ada_norm_zero", "out_channels": 8},
        {"hidden_states": LATENT, "timestep": STEP, "class_labels": torch.tensor([3])},
    ),
    "DiTTransformer2DModel": (
        LATENTS | SMALL | {"num_embeds_ada_norm": 20, "out_channels": 8},
        {"hidden_states": LATENT, "timestep": STEP, "class_labels": torch.tensor([3])},
    ),
    "PixArtTransformer2DModel": (
        LATENTS | SMALL | {"caption_channels": 32, "cross_attention_dim": 32, "use_additional_conditions": False},
        ENCODED | {"added_cond_kwargs": {"resolution": None, "aspect_ratio": None}},
    ),
    "SanaTransformer2DModel": (
        SMALL
        | {"sample_size": 8, "in_channels": 4, "out_channels": 4, "num_cross_attention_heads": 2}
        | {"cross_attention_head_dim": 16, "cross_attention_dim": 32, "caption_channels": 32},
        ENCODED,
    ),
    "SD3Transformer2DModel": (
        LATENTS
        | SMALL
        | {"joint_attention_dim": 32, "caption_projection_dim": 32, "pooled_projection_dim": 16, "out_channels": 4},
        ENCODED | {"pooled_projections": (1, 16)},
    ),
    "FluxTransformer2DModel": (
        SMALL
        | {"in_channels": 4, "num_single_layers": 1, "joint_attention_dim": 32, "pooled_projection_dim": 16}
        | {"axes_dims_rope": [4, 4, 8], "patch_size": 1},
        {
            "hidden_states": (1, 16, 4),
            "encoder_hidden_states": TEXT,
            "pooled_projections": (1, 16),
            "timestep": torch.tensor([0.5]),
            "img_ids": torch.cartesian_prod(torch.zeros(1), torch.arange(4.0), torch.arange(4.0)),
            "txt_ids": torch.zeros(7, 3),
        },
    ),
    "AuraFlowTransformer2DModel": (
        LATENTS
        | {"num_mmdit_layers": 1, "num_single_dit_layers": 1, "num_attention_heads": 2, "attention_head_dim": 16}
        | {"joint_attention_dim": 32, "caption_projection_dim": 32, "out_channels": 4, "pos_embed_max_size": 64},
        ENCODED | {"timestep": torch.tensor([0.5])},
    ),
    "Lumina2Transformer2DModel": (
        {"sample_size": 8, "in_channels": 4, "hidden_size": 32, "num_layers": 1, "num_refiner_layers": 1}
        | {"num_attention_heads": 2, "num_kv_heads": 1, "multiple_of": 16, "axes_dim_rope": (4, 4, 8)}
        | {"axes_lens": (32, 32, 32), "cap_feat_dim": 32},
        ENCODED | {"encoder_attention_mask": torch.ones(1, 7, dtype=torch.bool)},
    ),
    "PriorTransformer": (
        SMALL | {"embedding_dim": 32, "num_embeddings": 7, "additional_embeddings": 4},
        {"hidden_states": (1, 32), "timestep": STEP, "proj_embedding": (1, 32), "encoder_hidden_states": TEXT},
    ),
    "LTXVideoTransformer3DModel": (
        SMALL | {"in_channels": 4, "out_channels": 4, "cross_attention_dim": 32, "caption_channels": 32},
        {
            "hidden_states": (1, 48, 4),
            "encoder_hidden_states": TEXT,
            "timestep": STEP,
            "encoder_attention_mask": torch.ones(1, 7),
            "num_frames": 3,
            "height": 4,
            "width": 4,
        },
    ),
    "WanTransformer3DModel": (
        SMALL
        | {"in_channels": 4, "out_channels": 4, "text_dim": 32, "freq_dim": 32, "ffn_dim": 48, "rope_max_seq_len": 32},
        VIDEO,
    ),
    "T2IAdapter": (
        {"in_channels": 3, "channels": [32, 64], "num_res_blocks": 1, "downscale_factor": 8},
        {"x": PICTURE},
    ),
    "StableAudioDiTModel": (
        SMALL
        | {"sample_size": 16, "in_channels": 4, "out_channels": 4, "num_key_value_attention_heads": 1}
        | {
            "cross_attention_dim": 32,
            "cross_attention_input_dim": 32,
            "time_proj_dim": 16,
            "global_states_input_dim": 16,
        },
        {
            "hidden_states": (1, 4, 16),
            "timestep": STEP,
            "encoder_hidden_states": TEXT,
            "global_hidden_states": (1, 1, 16),
            "rotary_embedding": (torch.randn(17, 8).cos(), torch.randn(17, 8).sin()),
        },
    ),
}


def load() -> None:
    """Import what all networks need, once: each has a process that is a fork of this one."""
    import aot.frontends.pt2.convert  # noqa: F401, PLC0415


def names() -> list[str]:
    return [*NETWORKS]


def network(name: str) -> tuple[Any, dict[str, Any]]:
    """Return a network in evaluation, and its arguments."""
    config, given = NETWORKS[name]
    module = getattr(diffusers, name)(**config).eval()
    draw_silent_weights(module)
    shapes = {k: v for k, v in given.items() if isinstance(v, tuple) and isinstance(v[0], int)}
    return module, given | {k: torch.randn(*v) for k, v in shapes.items()}
