"""Trains the digit network of this folder and writes model.xml, model.bin and some test digits beside itself.

    8x8 image -> conv 3x3 relu -> conv 3x3 relu -> max pool -> conv 3x3 relu -> mean of channels -> dense -> softmax

The data are the 1797 handwritten digits that scikit-learn brings along; a quarter of them is kept for the test.
Needs torch, scikit-learn and openvino; the compiler itself needs none of them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

EPOCHS, BATCH = 80, 64


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

    def scores(self, x: Tensor) -> Tensor:
        return self.classify(self.features(x / 16).mean((2, 3)))

    def forward(self, x: Tensor) -> Tensor:
        return self.scores(x).softmax(-1)


def shifted(x: Tensor) -> Tensor:
    """The batch, moved by up to one pixel each way."""
    dy, dx = (int(d) for d in torch.randint(0, 3, (2,)))
    return nn.functional.pad(x, (1, 1, 1, 1))[:, :, dy : dy + 8, dx : dx + 8]


def train(x: Tensor, y: Tensor) -> Digits:
    """A trained network; the same one each time, but for the machine's rounding."""
    torch.manual_seed(0)
    model = Digits()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(x)).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model.scores(shifted(x[batch])), y[batch]).backward()
            optimizer.step()
        schedule.step()
    return model.eval()


def export(model: Digits, path: Path) -> None:
    """Write the network for one image as OpenVINO IR with f32 weights."""
    converted = openvino.convert_model(model, example_input=torch.zeros(1, 1, 8, 8), input=[1, 1, 8, 8])
    converted.set_friendly_name("digits")
    converted.input(0).set_names({"image"})
    converted.output(0).set_names({"probabilities"})
    converted.get_parameters()[0].set_friendly_name("image")
    openvino.save_model(converted, path, compress_to_fp16=False)


def main() -> None:
    data = load_digits()
    images = data.images[:, None].astype(np.float32)
    parts = train_test_split(images, data.target, test_size=0.25, random_state=0, stratify=data.target)
    x_train, x_test, y_train, y_test = (torch.from_numpy(p) for p in parts)
    model = train(x_train, y_train)
    with torch.no_grad():
        accuracy = (model(x_test).argmax(-1) == y_test).float().mean().item()
    print(f"{accuracy:.2%} of {len(x_test)} test digits are right")
    folder = Path(__file__).parent
    export(model, folder / "model.xml")
    first = [int((y_test == digit).nonzero()[0]) for digit in range(10)]
    np.savez_compressed(folder / "digits.npz", images=x_test[first].numpy(), labels=y_test[first].numpy())
    np.save(folder / "seven.npy", x_test[first[7:8]].numpy())


if __name__ == "__main__":
    main()
