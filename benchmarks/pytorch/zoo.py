"""Networks of timm and transformers in small variants, with the sizes of their configurations. Needs both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import timm
import torch
import transformers
from torch import nn

from benchmarks.pytorch.network import Inputs, Network
from benchmarks.pytorch.vision import images

PICTURES = (
    "efficientformer_l1 mobilevit_xs mobilevitv2_050 repvgg_a0 ghostnet_100 fastvit_t8 mobileone_s0 "
    "edgenext_x_small poolformer_s12 mixer_s32_224 coat_lite_tiny pvt_v2_b0 xcit_nano_12_p16_224 "
    "hrnet_w18_small res2net50_26w_4s seresnet18 dla34 ese_vovnet19b_slim dpn48b tiny_vit_5m_224 levit_128s "
    "gcvit_xxtiny mobilenetv4_conv_small repvit_m0_9 inception_next_atto starnet_s1 coatnet_nano_rw_224 "
    "focalnet_tiny_srf mvitv2_tiny rexnet_100 halonet26t volo_d1_224 convmixer_768_32 resmlp_12_224 "
    "gmlp_ti16_224 efficientvit_b0 efficientvit_m0 eca_nfnet_l0 shvit_s1 "
).split()
SIDES = {"halonet26t": 256, "mobilevit_xs": 256, "mobilevitv2_050": 256, "coatnet_nano_rw_224": 224}
VOCABULARY = 5000
TEXT = {"vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
MINILM = {
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "max_position_embeddings": 512,
}
DEBERTA = {
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_buckets": 64,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "max_relative_positions": -1,
}
ENCODERS: dict[str, tuple[str, Mapping[str, Any], int]] = {
    "minilm_32": ("Bert", MINILM, 32),
    "minilm_128": ("Bert", MINILM, 128),
    "minilm_256": ("Bert", MINILM, 256),
    "distilbert": ("DistilBert", {"n_layers": 3}, 64),
    "albert": (
        "Albert",
        {"hidden_size": 768, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 3072},
        32,
    ),
    "electra_small": ("Electra", {"hidden_size": 256, "intermediate_size": 1024, "num_attention_heads": 4}, 128),
    "deberta_xsmall": ("DebertaV2", MINILM | DEBERTA | {"num_attention_heads": 6}, 128),
    "mpnet": ("MPNet", MINILM | {"pad_token_id": 1}, 128),
    "squeezebert": ("SqueezeBert", {"num_hidden_layers": 4}, 64),
    "mobilebert": ("MobileBert", {"num_hidden_layers": 12}, 64),
    "convbert": ("ConvBert", MINILM | {"embedding_size": 384}, 128),
    "fnet": ("FNet", {"num_hidden_layers": 4, "hidden_size": 256}, 64),
    "modernbert": ("ModernBert", MINILM | {"local_attention": 64, "cls_token_id": 1, "sep_token_id": 2}, 256),
}
DECODERS: dict[str, tuple[str, Mapping[str, Any], int]] = {
    "gpt2_4": ("GPT2", {"n_layer": 4}, 64),
    "opt_small": (
        "OPT",
        {
            "hidden_size": 512,
            "ffn_dim": 2048,
            "num_hidden_layers": 4,
            "num_attention_heads": 8,
            "word_embed_proj_dim": 512,
        },
        64,
    ),
    "bloom_small": ("Bloom", {"hidden_size": 384, "n_layer": 4, "n_head": 6}, 64),
}
WAVES: dict[str, tuple[str, Mapping[str, Any]]] = {
    "wav2vec2": ("Wav2Vec2", {"num_hidden_layers": 3}),
    "hubert": ("Hubert", {"num_hidden_layers": 3}),
}


class First(nn.Module):
    """A model of one input whose result is the first tensor of its results."""

    def __init__(self, model: nn.Module, name: str, more: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.model, self.name, self.more = model, name, dict(more or {})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(**{self.name: x}, **self.more, return_dict=True)[0]


def model(name: str, more: Mapping[str, Any], kind: str = "Model") -> Any:
    """A model of transformers by the name of its family, in attention that is written out."""
    config = getattr(transformers, f"{name}Config")(**more)
    return getattr(transformers, f"{name}{kind}")._from_config(config, attn_implementation="eager")


def tokens(batch: int, length: int) -> Inputs:
    return {"x": torch.randint(3, VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(length))}


def waves(batch: int, length: int) -> Inputs:
    return {"x": torch.randn(batch, length, generator=torch.Generator().manual_seed(length))}


def channels(*shape: int) -> Inputs:
    return {"x": torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))}


def picture_network(name: str) -> Network:
    return Network(name, lambda: timm.create_model(name, pretrained=False), images, [(1, SIDES.get(name, 224))])


def text_network(name: str, family: str, more: Mapping[str, Any], length: int, kind: str = "Model") -> Network:
    return Network(
        name,
        lambda: First(
            model(family, {**TEXT, **more}, kind), "input_ids", {"use_cache": False} if name in DECODERS else {}
        ),
        tokens,
        [(1, length)],
    )


def others() -> list[Network]:
    """Networks of transformers that are no plain encoders or decoders of text."""
    segformer = {"hidden_sizes": [32, 64, 160, 256], "depths": [2, 2, 2, 2], "num_labels": 19}
    swin2sr = {
        "embed_dim": 60,
        "depths": [2, 2],
        "num_heads": [6, 6],
        "upsampler": "pixelshuffledirect",
        "upscale": 2,
        "image_size": 64,
        "window_size": 8,
        "mlp_ratio": 2,
    }
    whisper = {
        "d_model": 384,
        "encoder_layers": 4,
        "encoder_attention_heads": 6,
        "encoder_ffn_dim": 1536,
        "max_source_positions": 500,
    }
    t5 = {"d_model": 512, "num_layers": 6, "num_heads": 8, "d_ff": 2048, "vocab_size": VOCABULARY}
    dino = {"hidden_size": 384, "num_attention_heads": 6, "num_hidden_layers": 6, "image_size": 224, "patch_size": 14}
    patches = {
        "num_input_channels": 7,
        "context_length": 512,
        "prediction_length": 96,
        "patch_length": 16,
        "patch_stride": 8,
    }
    yolos = {
        "hidden_size": 192,
        "num_hidden_layers": 6,
        "num_attention_heads": 3,
        "intermediate_size": 768,
        "image_size": [256, 256],
        "num_detection_tokens": 50,
    }
    hifigan = {"upsample_initial_channel": 128, "normalize_before": False}
    return [
        Network(
            "segformer_b0",
            lambda: First(model("Segformer", segformer, "ForSemanticSegmentation"), "pixel_values"),
            images,
            [(1, 256)],
        ),
        Network(
            "swin2sr",
            lambda: First(model("Swin2SR", swin2sr, "ForImageSuperResolution"), "pixel_values"),
            images,
            [(1, 64)],
        ),
        Network(
            "whisper_tiny_encoder",
            lambda: First(model("Whisper", whisper).encoder, "input_features"),
            lambda *s: channels(1, 80, 1000),
            [(1,)],
        ),
        Network("t5_small_encoder", lambda: First(model("T5", t5, "EncoderModel"), "input_ids"), tokens, [(1, 64)]),
        Network("dinov2_small", lambda: First(model("Dinov2", dino), "pixel_values"), images, [(1, 224)]),
        Network(
            "patchtst",
            lambda: First(model("PatchTST", patches, "ForPrediction"), "past_values"),
            lambda *s: channels(1, 512, 7),
            [(1,)],
        ),
        Network(
            "yolos_tiny", lambda: First(model("Yolos", yolos, "ForObjectDetection"), "pixel_values"), images, [(1, 256)]
        ),
        Network(
            "hifigan",
            lambda: transformers.SpeechT5HifiGan(transformers.SpeechT5HifiGanConfig(**hifigan)),
            lambda *s: {"spectrogram": torch.randn(1, 40, 80)},
            [(1,)],
        ),
    ]


def networks() -> list[Network]:
    """All of them."""
    return [
        *map(picture_network, PICTURES),
        *(text_network(name, *given) for name, given in {**ENCODERS, **DECODERS}.items()),
        *(
            Network(name, lambda f=family, m=more: First(model(f, m), "input_values"), waves, [(1, 16000)])
            for name, (family, more) in WAVES.items()
        ),
        *others(),
    ]
