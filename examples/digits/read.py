"""Shows the ten test digits to the compiled network: `python read.py digits.so`. Needs the runtime, no compiler."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import runtime

SHADES = " .:-=+*#%@"
ACROSS, WIDTH = 5, 20


def drawing(image: NDArray[np.float32]) -> list[str]:
    """Lines of text for pixels from 0 to 16."""
    rows = (image[0] * (len(SHADES) - 1) / 16).round().astype(int)
    return ["".join(SHADES[level] * 2 for level in row) for row in rows]


def milliseconds(model: runtime.CompiledModel, image: NDArray[np.float32], runs: int = 500) -> float:
    """Median time of one inference."""
    times: list[float] = []
    for _ in range(runs):
        begin = time.perf_counter()
        model(image)
        times.append(time.perf_counter() - begin)
    return float(np.median(times)) * 1e3


def main() -> None:
    model = runtime.load(sys.argv[1])
    digits = np.load(Path(__file__).with_name("digits.npz"))
    images: list[NDArray[np.float32]] = list(digits["images"])
    cells: list[list[str]] = []
    right = 0
    for image, label in zip(images, digits["labels"], strict=True):
        probabilities = model(image[None])[0][0]
        found = int(probabilities.argmax())
        right += found == label
        verdict = "" if found == label else f" (is {label})"
        cells.append([*drawing(image), f"{found}, {probabilities[found]:.0%} sure{verdict}"])
    for start in range(0, len(cells), ACROSS):
        for parts in zip(*cells[start : start + ACROSS], strict=True):
            print("  ".join(part.ljust(WIDTH) for part in parts).rstrip())
        print()
    print(f"{right} of {len(images)} handwritten digits are read right")
    size = Path(sys.argv[1]).stat().st_size
    print(f"library {size / 1e3:.0f} kB, code and weights; one inference {milliseconds(model, images[0][None]):.4f} ms")


if __name__ == "__main__":
    main()
