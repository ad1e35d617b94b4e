"""Makes the files of this folder: `python -m tests.frontends.huggingface.encoder_decoders.make [NAMES]`, from the root.

Needs torch and transformers. Small networks whose weights follow from the names of their tensors: config.json as
transformers writes it, the shapes of the tensors, a source, 64 greedy tokens that PyTorch gives in f64, 64 tokens that
are forced, the logits of every eighth of these, and the tokens of beam searches.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
import transformers
from safetensors import safe_open

from tests.frontends.huggingface.folders import weight, write

BART = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "vocab_size": 96,
    "max_position_embeddings": 192,
    "decoder_start_token_id": 2,
    "pad_token_id": 1,
}
T5 = {
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_heads": 4,
    "vocab_size": 96,
    "decoder_start_token_id": 0,
    "relative_attention_max_distance": 40,
}
GATED = {**T5, "d_kv": 12, "num_decoder_layers": 3, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
SIZES = {
    "t5": T5,
    "t5_gated": GATED,
    "bart": {**BART, "decoder_layers": 3, "forced_bos_token_id": 0},
    "mbart": BART,
    "marian": {**BART, "decoder_vocab_size": 96, "scale_embedding": True, "activation_function": "swish"},
    "pegasus": {**BART, "activation_function": "relu"},
    "m2m_100": {**BART, "scale_embedding": True, "activation_function": "relu", "decoder_attention_heads": 2},
}
FAMILIES = {"t5": "T5", "t5_gated": "T5", "bart": "Bart", "mbart": "MBart", "m2m_100": "M2M100"}
SOURCE, TOKENS, EVERY = 50, 64, 8
BEAMS = (2, (78,)), (3, (2, 7, 31)), (5, (2, 7, 31)), (5, (78,))  # numbers of beams, and tokens that end texts


def main(folder: Path, *names: str) -> None:
    for name in names or SIZES:
        family = FAMILIES.get(name, name.title())
        config = getattr(transformers, family + "Config")(**SIZES[name])
        head = "MTModel" if family == "Marian" else "ForConditionalGeneration"
        model = getattr(transformers, family + head)(config).eval()
        source = torch.tensor(np.random.default_rng(0).integers(3, 96, (1, SOURCE)))
        with TemporaryDirectory() as made, torch.no_grad():
            model.save_pretrained(made)
            with safe_open(Path(made) / "model.safetensors", "np") as file:
                shapes = {key: list(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118
            named = {key: weight(key, shape, 1.0) for key, shape in shapes.items()}
            told, generation = (json.loads(c.to_json_string()) for c in (model.config, model.generation_config))
            write(Path(made), told, named)
            model = type(model).from_pretrained(made, dtype=torch.float64, attn_implementation="eager").eval()
            start = [config.decoder_start_token_id]
            start += [0] if name == "bart" else []
            tokens = torch.tensor([start])
            for _ in range(TOKENS):
                tokens = torch.cat([tokens, model(source, decoder_input_ids=tokens).logits[:, -1:].argmax(-1)], 1)
            forced = torch.tensor(np.random.default_rng(1).integers(3, 96, (1, TOKENS)))
            how = {"forced_bos_token_id": None, "forced_eos_token_id": None, "do_sample": False, "max_new_tokens": 24}
            given = {"decoder_input_ids": torch.tensor([start]), **how}
            beams = [model.generate(source, num_beams=n, eos_token_id=list(ends), **given) for n, ends in BEAMS]
            logits = model(source, decoder_input_ids=forced).logits[0].numpy().astype(np.float32)
        facts = {"config": told, "generation": generation, "shapes": shapes}
        arrays = {"source": source, "tokens": tokens[:, len(start) :], "forced": forced}
        named = {key: array[0].numpy() for key, array in arrays.items()} | {"logits": logits[::EVERY]}
        named |= {f"beams {n}": found[0, len(start) :].numpy() for n, found in enumerate(beams)}
        np.savez_compressed(folder / f"{name}.npz", facts=json.dumps(facts), **named)


if __name__ == "__main__":
    main(Path(__file__).parent, *sys.argv[1:])
