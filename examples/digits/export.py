"""Writes model.pt2 beside itself: the network of this folder as PyTorch exports it, with the weights of model.xml.

Needs torch; the compiler reads the file without it.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import torch
from torch import Tensor, nn

import aot

HERE = Path(__file__).parent
BATCH = torch.export.Dim("batch", min=1, max=64)


class Digits(nn.Module):
    """Pixels from 0 to 16, f32[n,1,8,8], to probabilities of the ten digits."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 48, 3, padding=1),
            nn.ReLU(),
        )
        self.classify = nn.Linear(48, 10)

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        return {"probabilities": self.classify(self.features(image / 16).mean((2, 3))).softmax(-1)}


def main() -> None:
    model = Digits().eval()
    constants = [n.out_port(0).value for n in aot.read_model(HERE / "model.xml").nodes.values() if n.type == "Constant"]
    for parameter in model.parameters():
        stored = next(c for c in constants if c.size == parameter.numel() and c.dtype.kind == "f")
        parameter.data = torch.from_numpy(stored.copy()).reshape(parameter.shape)
    sizes = {"image": {0: BATCH}}
    program = torch.export.export(model, (torch.zeros(2, 1, 8, 8),), dynamic_shapes=sizes)
    torch.export.save(program, HERE / "model.pt2")
    forget_folders(HERE / "model.pt2")


def forget_folders(path: Path) -> None:
    """Keep the names of files in the traces of an archive, not the folders of this machine; drop the samples."""
    with zipfile.ZipFile(path) as archive:
        entries = {i: archive.read(i) for i in archive.infolist() if "sample_inputs" not in i.filename}
    with zipfile.ZipFile(path, "w") as archive:
        for info, data in entries.items():
            is_model = info.filename.endswith("models/model.json")
            archive.writestr(info, re.sub(rb'File \\"/[^"]*/', rb'File \\"', data) if is_model else data)


if __name__ == "__main__":
    main()
