"""Ray Data: each actor opens the library, whose code and weights are in memory once for all of them."""

import sys

import numpy as np
import ray

from runtime.predictor import Predictor


def main(library: str, rows: int = 1000, actors: int = 2) -> dict[int, int]:
    """Return how often each digit was read in `rows` copies of one image."""
    seven = np.load("examples/digits/seven.npy").reshape(64)
    table = ray.data.from_numpy(np.repeat(seven[None], rows, 0)).rename_columns({"data": "image"})
    results = table.map_batches(
        Predictor, fn_constructor_args=(library,), concurrency=actors, batch_size=256, num_cpus=0.1
    )
    digits = [row["probabilities"].argmax() for row in results.iter_rows()]
    return {int(digit): digits.count(digit) for digit in set(digits)}


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    print(main(sys.argv[1]))
