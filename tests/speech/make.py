"""Makes whisper.npz and vits.npz in this folder: `python -m tests.speech.make`, from the root.

Needs torch and transformers. A small network whose weights follow from the names of their tensors: config.json and
generation_config.json as transformers writes them, the shapes of the tensors, PyTorch's logits of tokens behind a
sound, in f64, and the tokens of one window with and without times, by the rules of transformers. Of VITS, with one
speaker and with several, PyTorch's audio of tokens without noise, in f64.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
import transformers
from safetensors import safe_open
from transformers.generation.logits_process import (
    LogitsProcessorList,
    SuppressTokensAtBeginLogitsProcessor,
    SuppressTokensLogitsProcessor,
    WhisperTimeStampLogitsProcessor,
)

from tests.frontends.huggingface.folders import Array, weight, write
from tests.speech.sound import RATE, sound
from tests.speech.voices import weights

CONFIG = {
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "vocab_size": 160,
    "max_target_positions": 48,
    "num_mel_bins": 80,
    "eos_token_id": 60,
    "pad_token_id": 60,
    "bos_token_id": 60,
    "decoder_start_token_id": 61,
}
GENERATION = {
    "is_multilingual": True,
    "lang_to_id": {"<|en|>": 62, "<|de|>": 63, "<|fr|>": 64},
    "task_to_id": {"transcribe": 65, "translate": 66},
    "no_timestamps_token_id": 67,
    "max_initial_timestamp_index": 10,
    "suppress_tokens": [7, 61, 62, 63, 64, 65, 66],
    "begin_suppress_tokens": [3, 60],
    "max_length": 48,
}

VOICE = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "window_size": 2,
    "ffn_dim": 24,
    "flow_size": 8,
    "spectrogram_bins": 5,
    "duration_predictor_num_flows": 2,
    "duration_predictor_flow_bins": 6,
    "duration_predictor_filter_channels": 12,
    "depth_separable_num_layers": 2,
    "prior_encoder_num_flows": 1,
    "prior_encoder_num_wavenet_layers": 2,
    "posterior_encoder_num_wavenet_layers": 1,
    "wavenet_dilation_rate": 2,
    "upsample_initial_channel": 16,
    "upsample_rates": [4, 2],
    "upsample_kernel_sizes": [8, 4],
    "resblock_kernel_sizes": [3, 5],
    "resblock_dilation_sizes": [[1, 3], [1, 2]],
    "vocab_size": 30,
}
SPEAKERS = {"num_speakers": 3, "speaker_embedding_size": 6, "use_stochastic_duration_prediction": False}


def written(model: transformers.WhisperForConditionalGeneration, features: torch.Tensor, *, timed: bool) -> Array:
    languages = torch.tensor(list(GENERATION["lang_to_id"].values()))
    first = model(features, decoder_input_ids=torch.tensor([[61]])).logits[0, -1]
    ids = torch.tensor([[61, languages[first[languages].argmax()], 65, *([] if timed else [67])]])
    start = ids.shape[1]
    rules = LogitsProcessorList(
        [
            SuppressTokensLogitsProcessor(GENERATION["suppress_tokens"]),
            SuppressTokensAtBeginLogitsProcessor(GENERATION["begin_suppress_tokens"], start),
            *([WhisperTimeStampLogitsProcessor(model.generation_config, start)] if timed else []),
        ]
    )
    while ids.shape[1] < CONFIG["max_target_positions"] and ids[0, -1] != CONFIG["eos_token_id"]:
        logits = rules(ids, model(features, decoder_input_ids=ids).logits[:, -1])
        ids = torch.cat([ids, logits.argmax(-1)[None]], 1)
    return ids[0].numpy()


def main(folder: Path) -> None:
    model = transformers.WhisperForConditionalGeneration(transformers.WhisperConfig(**CONFIG)).eval()
    audio = sound(12)
    features = transformers.WhisperFeatureExtractor()(audio, sampling_rate=RATE, return_tensors="pt").input_features
    with TemporaryDirectory() as made, torch.no_grad():
        model.save_pretrained(made)
        with safe_open(Path(made) / "model.safetensors", "np") as file:
            shapes = {key: list(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118
        config = json.loads(model.config.to_json_string())
        write(Path(made), config, {key: weight(key, shape, 1.0) for key, shape in shapes.items()})
        model = type(model).from_pretrained(made, dtype=torch.float64, attn_implementation="eager").eval()
        for key, value in GENERATION.items():
            setattr(model.generation_config, key, value)
        features = features.to(torch.float64)
        ids = torch.tensor([[61, 62, 65, *np.random.default_rng(1).integers(0, 160, 20)]])
        logits = model(features, decoder_input_ids=ids).logits[0].numpy().astype(np.float32)
        plain, timed = (written(model, features, timed=timed) for timed in (False, True))
        generation = json.loads(model.generation_config.to_json_string())
    facts = {"config": config, "generation": generation, "shapes": shapes}
    arrays = {"ids": ids[0].numpy(), "logits": logits, "plain": plain, "timed": timed}
    np.savez_compressed(folder / "whisper.npz", facts=json.dumps(facts), **arrays)


def voices(folder: Path) -> None:
    """Write the audio of both kinds of VITS."""
    ids, arrays, facts = np.random.default_rng(2).integers(0, 30, (1, 13)), dict[str, Array](), dict[str, object]()
    for name, more in (("one", {}), ("several", SPEAKERS)):
        model = transformers.VitsModel(transformers.VitsConfig(**VOICE, **more))
        with TemporaryDirectory() as made, torch.no_grad():
            model.save_pretrained(made)
            with safe_open(Path(made) / "model.safetensors", "np") as file:
                shapes = {key: list(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118
            config = json.loads(model.config.to_json_string())
            write(Path(made), config, weights(shapes))
            model = type(model).from_pretrained(made, dtype=torch.float64).eval()
            model.noise_scale = model.noise_scale_duration = 0.0
            found = model(torch.tensor(ids), **({"speaker_id": 2} if more else {})).waveform[0].numpy()
        facts[name], arrays[name] = {"config": config, "shapes": shapes}, found.astype(np.float32)
    np.savez_compressed(folder / "vits.npz", facts=json.dumps(facts), ids=ids, **arrays)


if __name__ == "__main__":
    main(Path(__file__).parent)
    voices(Path(__file__).parent)
