"""Networks of torchaudio, small and with random weights, and its transforms. Needs torchaudio."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torchaudio import models, transforms

from benchmarks.pytorch.network import draw_silent_weights

RATE = 16000
SOUND, LENGTH, FEATURES = (1, 2000), torch.tensor([20]), (1, 20, 16)
CONVOLUTIONS = [(16, 10, 5), (16, 3, 2), (16, 3, 2)]
ENCODER: dict[str, Any] = {
    "extractor_mode": "group_norm",
    "extractor_conv_layer_config": CONVOLUTIONS,
    "extractor_conv_bias": False,
    "encoder_embed_dim": 32,
    "encoder_projection_dropout": 0.0,
    "encoder_pos_conv_kernel": 8,
    "encoder_pos_conv_groups": 4,
    "encoder_num_layers": 2,
    "encoder_num_heads": 4,
    "encoder_attention_dropout": 0.0,
    "encoder_ff_interm_features": 48,
    "encoder_ff_interm_dropout": 0.0,
    "encoder_dropout": 0.0,
    "encoder_layer_norm_first": False,
    "encoder_layer_drop": 0.0,
    "aux_num_out": 12,
}
WAVLM = {"encoder_num_buckets": 32, "encoder_max_distance": 80}
TRANSDUCER: dict[str, Any] = {
    "input_dim": 16,
    "encoding_dim": 32,
    "num_symbols": 24,
    "segment_length": 8,
    "right_context_length": 4,
    "time_reduction_input_dim": 16,
    "time_reduction_stride": 2,
    "transformer_num_heads": 2,
    "transformer_ffn_dim": 48,
    "transformer_num_layers": 1,
    "transformer_dropout": 0.0,
    "transformer_activation": "gelu",
    "transformer_left_context_length": 8,
    "transformer_max_memory_size": 0,
    "transformer_weight_init_scale_strategy": "depthwise",
    "transformer_tanh_on_mem": True,
    "symbol_embedding_dim": 16,
    "num_lstm_layers": 1,
    "lstm_layer_norm": True,
    "lstm_layer_norm_epsilon": 1e-3,
    "lstm_dropout": 0.0,
}
TACOTRON: dict[str, Any] = {
    "n_mels": 16,
    "symbol_embedding_dim": 32,
    "encoder_embedding_dim": 32,
    "decoder_rnn_dim": 32,
    "attention_rnn_dim": 32,
    "attention_hidden_dim": 16,
    "attention_location_n_filter": 8,
    "attention_location_kernel_size": 7,
    "prenet_dim": 16,
    "postnet_embedding_dim": 32,
}
SPECTRUM = {"n_fft": 400, "hop_length": 160}

# Name: what makes the module, and its arguments: shapes of random numbers, or values.
NETWORKS: dict[str, tuple[Callable[[], nn.Module], dict[str, Any]]] = {
    "wav2vec2": (lambda: models.wav2vec2_model(**ENCODER), {"waveforms": SOUND}),
    "wav2vec2_lengths": (
        lambda: models.wav2vec2_model(**ENCODER | {"extractor_mode": "layer_norm", "encoder_layer_norm_first": True}),
        {"waveforms": (2, 2000), "lengths": torch.tensor([2000, 1500])},
    ),
    "wavlm": (lambda: models.wavlm_model(**ENCODER | WAVLM), {"waveforms": SOUND}),
    "conv_tasnet": (
        lambda: models.ConvTasNet(
            enc_num_feats=16, msk_num_feats=8, msk_num_hidden_feats=16, msk_num_layers=2, msk_num_stacks=1
        ),
        {"input": (1, 1, 2000)},
    ),
    "deepspeech": (lambda: models.DeepSpeech(16, 32, 12), {"x": (1, 1, 20, 16)}),
    "wav2letter": (lambda: models.Wav2Letter(12), {"x": (1, 1, 4000)}),
    "wavernn": (
        lambda: models.WaveRNN(
            [2, 2, 3], 16, 12, n_res_block=1, n_rnn=16, n_fc=16, n_freq=16, n_hidden=16, n_output=16
        ),
        {"waveform": (1, 1, 72), "specgram": (1, 1, 16, 10)},
    ),
    "conformer": (lambda: models.Conformer(16, 2, 48, 2, 7), {"input": FEATURES, "lengths": LENGTH}),
    "emformer": (
        lambda: models.Emformer(16, 2, 48, 1, 8, left_context_length=4, right_context_length=4),
        {"input": FEATURES, "lengths": torch.tensor([16])},
    ),
    "hdemucs": (
        lambda: models.HDemucs(["drums", "vocals"], channels=4, depth=4, nfft=256),
        {"input": (1, 2, 4096)},
    ),
    "tacotron2": (
        lambda: models.Tacotron2(**TACOTRON),
        {
            "tokens": torch.arange(7)[None],
            "token_lengths": torch.tensor([7]),
            "mel_specgram": (1, 16, 5),
            "mel_specgram_lengths": torch.tensor([5]),
        },
    ),
    "squim_objective": (lambda: models.squim_objective_model(16, 64, 16, 2, 16, 1, "LSTM", 8), {"x": SOUND}),
    "emformer_rnnt": (
        lambda: models.emformer_rnnt_model(**TRANSDUCER),
        {
            "sources": (1, 20, 16),
            "source_lengths": torch.tensor([16]),
            "targets": torch.arange(1, 6, dtype=torch.int32)[None],
            "target_lengths": torch.tensor([5], dtype=torch.int32),
        },
    ),
    "Spectrogram": (lambda: transforms.Spectrogram(**SPECTRUM), {"waveform": SOUND}),
    "InverseSpectrogram": (
        lambda: nn.Sequential(transforms.Spectrogram(power=None), transforms.InverseSpectrogram()),
        {"input": SOUND},
    ),
    "MelSpectrogram": (lambda: transforms.MelSpectrogram(RATE, **SPECTRUM), {"waveform": SOUND}),
    "MFCC": (lambda: transforms.MFCC(RATE, 13), {"waveform": SOUND}),
    "LFCC": (lambda: transforms.LFCC(RATE, n_lfcc=13), {"waveform": SOUND}),
    "SpectralCentroid": (lambda: transforms.SpectralCentroid(RATE), {"waveform": SOUND}),
    "AmplitudeToDB": (lambda: transforms.AmplitudeToDB(top_db=40.0), {"x": (1, 16, 20)}),
    "MuLawEncoding": (transforms.MuLawEncoding, {"x": SOUND}),
    "MuLawDecoding": (transforms.MuLawDecoding, {"x_mu": torch.arange(256)[None]}),
    "Resample": (lambda: transforms.Resample(RATE, 8000), {"waveform": SOUND}),
    "Fade": (lambda: transforms.Fade(100, 200, "half_sine"), {"waveform": SOUND}),
    "Vol": (lambda: transforms.Vol(6.0, "db"), {"waveform": SOUND}),
    "Preemphasis": (transforms.Preemphasis, {"waveform": SOUND}),
    "SlidingWindowCmn": (lambda: transforms.SlidingWindowCmn(10), {"specgram": FEATURES}),
    "ComputeDeltas": (transforms.ComputeDeltas, {"specgram": (1, 16, 20)}),
    "Convolve": (lambda: transforms.Convolve("same"), {"x": SOUND, "y": (1, 31)}),
    "FFTConvolve": (transforms.FFTConvolve, {"x": SOUND, "y": (1, 301)}),
    "GriffinLim": (
        lambda: transforms.GriffinLim(64, n_iter=4, rand_init=False),
        {"specgram": torch.linspace(0.1, 2, 33 * 12).reshape(1, 33, 12)},
    ),
    "TimeStretch": (
        lambda: nn.Sequential(transforms.Spectrogram(power=None), transforms.TimeStretch(fixed_rate=1.2, n_freq=201)),
        {"input": SOUND},
    ),
}


def load() -> None:
    """Import what all networks need, once: each has a process that is a fork of this one."""
    import aot.frontends.pt2.convert  # noqa: F401, PLC0415


def names() -> list[str]:
    return [*NETWORKS]


def network(name: str) -> tuple[Any, dict[str, Any]]:
    """Return a network in evaluation, and its arguments."""
    make, given = NETWORKS[name]
    module = make().eval()
    shapes = {k: v for k, v in given.items() if isinstance(v, tuple)}
    given = given | {k: torch.randn(*v) for k, v in shapes.items()}
    draw_silent_weights(module)
    return module, given
