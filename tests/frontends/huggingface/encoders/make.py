"""Makes the files of this folder: `python -m tests.frontends.huggingface.encoders.make [NAMES]` in the project's.

Needs torch and transformers. Small encoders whose weights follow from the names of their tensors: config.json as
transformers writes it, the shapes of the tensors, and PyTorch's last hidden states in f64 of two texts, of which one is
filled up.
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

LONG, SHORT, PADDING = 40, 25, 1
SIZES = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 48,
    "pad_token_id": PADDING,
}
MODERN = {
    "num_hidden_layers": 3,
    "global_attn_every_n_layers": 2,
    "local_attention": 32,
}  # each token that fills up sees one that does not
KINDS = {
    "bert": ("Bert", {}),
    "roberta": ("Roberta", {"type_vocab_size": 1, "layer_norm_eps": 1e-5}),
    "xlm-roberta": ("XLMRoberta", {"type_vocab_size": 1, "hidden_act": "relu"}),
    "distilbert": ("DistilBert", {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48}),
    "mpnet": ("MPNet", {}),
    "modernbert": ("ModernBert", {**MODERN, **dict.fromkeys(("bos_token_id", "eos_token_id"), 2)}),
}


def main(folder: Path, *names: str) -> None:
    ids = np.random.default_rng(0).integers(2, 64, (2, LONG))
    mask = (np.arange(LONG) < [[LONG], [SHORT]]).astype(np.int64)
    ids = np.where(mask, ids, PADDING)
    for name in names or KINDS:
        family, more = KINDS[name]
        config = getattr(transformers, f"{family}Config")(**{**SIZES, **more}, attn_implementation="eager")
        model = getattr(transformers, f"{family}Model")(config).eval()
        with TemporaryDirectory() as made, torch.no_grad():
            model.save_pretrained(made)
            with safe_open(Path(made) / "model.safetensors", "np") as file:
                shapes = {key: list(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118
            write(Path(made), json.loads(config.to_json_string()), {k: weight(k, s, 1.0) for k, s in shapes.items()})
            model = type(model).from_pretrained(made, dtype=torch.float64, attn_implementation="eager").eval()
            hidden = model(torch.tensor(ids), attention_mask=torch.tensor(mask)).last_hidden_state.numpy()
        told = {**json.loads(config.to_json_string(use_diff=False)), "architectures": [f"{family}Model"]}
        facts = json.dumps({"config": told, "shapes": shapes})
        np.savez_compressed(folder / f"{name}.npz", facts=facts, ids=ids, mask=mask, hidden=hidden.astype(np.float32))


if __name__ == "__main__":
    main(Path(__file__).parent, *sys.argv[1:])
