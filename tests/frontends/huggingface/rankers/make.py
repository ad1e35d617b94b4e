"""Makes the files of this folder: `python -m tests.frontends.huggingface.rankers.make` in the project's.

Needs torch and transformers. The encoders of the folder beside it with a head: config.json as transformers writes it,
the shapes of the tensors, and PyTorch's logits in f64 of two pairs of texts, of which one is filled up.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
import transformers
from safetensors import safe_open

from tests.frontends.huggingface.encoders.make import KINDS, PADDING, SIZES
from tests.frontends.huggingface.folders import weight, write

LONG, SHORT, SECOND = 20, 13, 9  # tokens, and where the second text of a pair begins
LABELS = {"bert": 1, "roberta": 3, "distilbert": 2, "modernbert": 1}
LAYERS = {"num_hidden_layers": 1}  # bodies are compared with PyTorch in the other folder
MORE = {
    "distilbert": {"n_layers": 1},
    "modernbert": {**LAYERS, "classifier_pooling": "mean", "classifier_activation": "gelu"},
}


def main(folder: Path) -> None:
    ids = np.random.default_rng(0).integers(2, 64, (2, LONG))
    places = np.arange(LONG)
    mask = (places < [[LONG], [SHORT]]).astype(np.int64)
    ids, types = np.where(mask, ids, PADDING), mask * (places >= SECOND)
    for name, labels in LABELS.items():
        family, more = KINDS[name]
        sizes = {
            **SIZES,
            **more,
            **(LAYERS if name != "distilbert" else {}),
            **MORE.get(name, {}),
            "num_labels": labels,
        }
        config = getattr(transformers, f"{family}Config")(**sizes, attn_implementation="eager")
        model = getattr(transformers, f"{family}ForSequenceClassification")(config).eval()
        with TemporaryDirectory() as made, torch.no_grad():
            model.save_pretrained(made)
            told = json.loads((Path(made) / "config.json").read_text())
            with safe_open(Path(made) / "model.safetensors", "np") as file:
                shapes = {key: list(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118
            write(Path(made), told, {k: weight(k, s, 1.0) for k, s in shapes.items()})
            model = type(model).from_pretrained(made, dtype=torch.float64, attn_implementation="eager").eval()
            inputs = {"input_ids": ids, "attention_mask": mask} | ({"token_type_ids": types} if name == "bert" else {})
            logits = model(**{key: torch.tensor(x) for key, x in inputs.items()}).logits.numpy()
        facts = json.dumps({"config": told, "shapes": shapes})
        np.savez_compressed(folder / f"{name}.npz", facts=facts, logits=logits, **inputs)


if __name__ == "__main__":
    main(Path(__file__).parent)
