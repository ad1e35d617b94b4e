"""Small random configurations of transformers: encoders, decoders with and without caches, vision, audio."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
import transformers
from torch import nn
from torch.export import Dim
from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

from benchmarks.pytorch.network import BATCH, Inputs, Network

LENGTH = Dim("length", min=2, max=64)
VOCABULARY = 120
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "max_position_embeddings": 96,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
VISION = {"image_size": 32, "patch_size": 8}
KEYS = {"num_key_value_heads": 2, "head_dim": 16}
ENCODERS: dict[str, Mapping[str, Any]] = {
    "Bert": {},
    "Roberta": {"pad_token_id": 1},
    "DistilBert": {"dim": 64, "hidden_dim": 96, "n_layers": 2, "n_heads": 4},
    "Albert": {"embedding_size": 32},
    "Electra": {"embedding_size": 32},
    "DebertaV2": {
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_buckets": 16,
        "norm_rel_ebd": "layer_norm",
    },
    "MPNet": {"pad_token_id": 1},
    "ModernBert": {"local_attention": 8, "global_attn_every_n_layers": 2, "cls_token_id": 1, "sep_token_id": 2},
}
DECODERS: dict[str, Mapping[str, Any]] = {
    "GPT2": {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 96},
    "Llama": KEYS,
    "Qwen2": KEYS,
    "Qwen3": KEYS,
    "Mistral": {**KEYS, "sliding_window": 8},
    "Gemma": KEYS,
    "Gemma2": {**KEYS, "sliding_window": 8},
    "OPT": {"ffn_dim": 96, "word_embed_proj_dim": 64},
    "Phi": {},
    "Phi3": KEYS,
    "GPTNeoX": {},
    "Falcon": {"alibi": False, "num_kv_heads": 2, "new_decoder_architecture": True},
    "Bloom": {"n_layer": 2, "n_head": 4},
}
CACHED = ("Llama", "Qwen2", "Gemma", "GPT2")
PICTURES: dict[str, Mapping[str, Any]] = {
    "ViT": {**SIZES, **VISION},
    "DeiT": {**SIZES, **VISION},
    "Beit": {**SIZES, **VISION, "use_relative_position_bias": True},
    "Dinov2": {**SIZES, **VISION},
    "Swin": {
        "image_size": 64,
        "patch_size": 4,
        "embed_dim": 24,
        "depths": [1, 2],
        "num_heads": [2, 4],
        "window_size": 4,
    },
    "ConvNext": {"hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 2, 1]},
    "Segformer": {"hidden_sizes": [16, 24, 32, 48], "num_attention_heads": [1, 2, 2, 4], "depths": [1, 1, 1, 1]},
    "MobileViT": {"image_size": 64, "hidden_sizes": [24, 32, 48], "neck_hidden_sizes": [8, 16, 24, 32, 40, 48, 64]},
}
CONVOLUTIONS = {
    "conv_dim": [32, 32],
    "conv_kernel": [10, 3],
    "conv_stride": [5, 2],
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}
WAVES: dict[str, Mapping[str, Any]] = {
    "Wav2Vec2": CONVOLUTIONS,
    "Hubert": CONVOLUTIONS,
    "WavLM": {**CONVOLUTIONS, "num_buckets": 16, "max_bucket_distance": 32},
}


class First(nn.Module):
    """A model whose result is the first tensor of its results; arguments by the names that the model has."""

    def __init__(self, model: nn.Module, *names: str, **more: Any) -> None:
        super().__init__()
        self.model, self.names, self.more = model, names, more

    def forward(self, first: torch.Tensor, second: torch.Tensor | None = None) -> torch.Tensor:
        given = dict(zip(self.names, (first, second), strict=False))
        return self.model(**given, **self.more, return_dict=True)[0]


def configured(name: str, more: Mapping[str, Any]) -> Any:
    """A configuration with small sizes."""
    return getattr(transformers, f"{name}Config")(**(SIZES | dict(more)))


def tokens(batch: int, length: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(batch * 100 + length)
    return torch.randint(3, VOCABULARY, (batch, length), generator=generator)


def mask(batch: int, length: int) -> torch.Tensor:
    """Return 1 for tokens that count, 0 for padding: none, one or two tokens at the end of each row."""
    return (torch.arange(length) < length - torch.arange(batch)[:, None] % 3).long()


def source_inputs(batch: int, length: int) -> Inputs:
    return {"first": tokens(batch, length), "second": mask(batch, length)}


OPEN = {"first": {**BATCH, 1: LENGTH}, "second": {**BATCH, 1: LENGTH}}
TEXTS = [(2, 11), (3, 7), (1, 24)]


def encoder(name: str, more: Mapping[str, Any]) -> Network:
    def build() -> nn.Module:
        model = getattr(transformers, f"{name}Model")(configured(name, more))
        return First(model, "input_ids", "attention_mask")

    return Network(name.lower(), build, source_inputs, TEXTS, OPEN)


def decoder(name: str, more: Mapping[str, Any]) -> Network:
    def build() -> nn.Module:
        kind = f"{name}LMHeadModel" if name == "GPT2" else f"{name}ForCausalLM"
        model = getattr(transformers, kind)(configured(name, more))
        return First(model, "input_ids", "attention_mask", use_cache=False)

    return Network(name.lower(), build, source_inputs, TEXTS, OPEN)


def cached_decoder(name: str) -> Network:
    """A decoder of one token at a time, whose keys and values are states."""

    def build() -> nn.Module:
        kind = f"{name}LMHeadModel" if name == "GPT2" else f"{name}ForCausalLM"
        model = getattr(transformers, kind)(configured(name, DECODERS[name])).eval()
        model.generation_config = transformers.GenerationConfig(
            use_cache=True,
            cache_implementation="static",
            max_length=32,
            cache_config={"batch_size": 1, "max_cache_len": 32, "device": "cpu"},
        )
        return TorchExportableModuleWithStaticCache(model, batch_size=1, max_cache_len=32, device="cpu")

    def token(place: int) -> Inputs:
        return {"input_ids": tokens(1, place + 1)[:, -1:], "cache_position": torch.tensor([place])}

    return Network(f"{name.lower()}_cached", build, token, [(0,), (1,), (2,)])


def encoder_decoder(name: str, more: Mapping[str, Any]) -> Network:
    def build() -> nn.Module:
        model = getattr(transformers, f"{name}ForConditionalGeneration")(configured(name, more))
        return First(model, "input_ids", "decoder_input_ids", use_cache=False)

    def inputs(batch: int, length: int) -> Inputs:
        return {"first": tokens(batch, length), "second": tokens(batch, length + 2)}

    after = Dim("after", min=2, max=64)
    return Network(name.lower(), build, inputs, TEXTS, {"first": {**BATCH, 1: LENGTH}, "second": {**BATCH, 1: after}})


def pictures(name: str, more: Mapping[str, Any]) -> Network:
    side = more.get("image_size", 64)

    def build() -> nn.Module:
        config = getattr(transformers, f"{name}Config")(**more)
        return First(getattr(transformers, f"{name}Model")(config), "pixel_values")

    def inputs(batch: int) -> Inputs:
        return {
            "first": torch.randn(batch, 3, side, side, generator=torch.Generator().manual_seed(batch)),
            "second": None,
        }

    return Network(name.lower(), build, inputs, [(2,), (3,)], {"first": BATCH, "second": None})


def waves(name: str, more: Mapping[str, Any]) -> Network:
    def build() -> nn.Module:
        return First(getattr(transformers, f"{name}Model")(configured(name, more)), "input_values")

    def inputs(batch: int, samples: int) -> Inputs:
        wave = torch.randn(batch, samples, generator=torch.Generator().manual_seed(samples))
        return {"first": wave, "second": None}

    return Network(
        name.lower(), build, inputs, [(2, 800), (3, 1001)], {"first": {**BATCH, 1: Dim.AUTO}, "second": None}
    )


def clip() -> Network:
    def build() -> nn.Module:
        sizes = {**SIZES, "projection_dim": 32}
        config = transformers.CLIPConfig(text_config=sizes, vision_config={**sizes, **VISION}, projection_dim=32)
        return First(transformers.CLIPModel(config), "input_ids", "pixel_values")

    def inputs(batch: int, length: int) -> Inputs:
        return {
            "first": tokens(batch, length),
            "second": torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1)),
        }

    return Network("clip", build, inputs, TEXTS, {"first": {**BATCH, 1: LENGTH}, "second": None})


WHISPER = {
    "vocab_size": VOCABULARY,
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 96,
    "num_mel_bins": 16,
    "max_source_positions": 50,
    "max_target_positions": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}


def whisper(part: str) -> Network:
    """The encoder, or the decoder behind given states."""

    def build() -> nn.Module:
        model = transformers.WhisperModel(transformers.WhisperConfig(**WHISPER))
        if part == "encoder":
            return First(model.encoder, "input_features")
        return First(model.decoder, "input_ids", "encoder_hidden_states", use_cache=False)

    def inputs(batch: int, length: int) -> Inputs:
        generator = torch.Generator().manual_seed(batch)
        if part == "encoder":
            return {"first": torch.randn(batch, 16, 100, generator=generator), "second": None}
        return {"first": tokens(batch, length), "second": torch.randn(batch, 50, 64, generator=generator)}

    opened = {"first": BATCH, "second": None} if part == "encoder" else {"first": {**BATCH, 1: LENGTH}, "second": BATCH}
    return Network(f"whisper_{part}", build, inputs, TEXTS[:2], opened)


T5 = {"d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
BART = {
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 96,
    "decoder_start_token_id": 1,
}


def networks() -> list[Network]:
    """All of them."""
    makers: list[tuple[Callable[..., Network], list[tuple[Any, ...]]]] = [
        (encoder, list(ENCODERS.items())),
        (decoder, list(DECODERS.items())),
        (cached_decoder, [(name,) for name in CACHED]),
        (encoder_decoder, [("T5", T5), ("Bart", BART)]),
        (pictures, list(PICTURES.items())),
        (waves, list(WAVES.items())),
        (clip, [()]),
        (whisper, [("encoder",), ("decoder",)]),
    ]
    return [make(*given) for make, all_given in makers for given in all_given]


def timed() -> list[Network]:
    """Networks of usual sizes, with a batch of one."""
    large = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
    made = [
        encoder("Bert", {**large, "max_position_embeddings": 512}),
        decoder("Llama", {**large, "num_hidden_layers": 6}),
    ]
    return [replace(network, sizes=[(1, 128)], dynamic=None) for network in made]
