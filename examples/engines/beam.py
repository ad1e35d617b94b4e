"""Apache Beam: a ModelHandler for RunInference."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.ml.inference.base import ModelHandler, PredictionResult, RunInference

from runtime.predictor import Predictor


class CompiledModelHandler(ModelHandler[np.ndarray, PredictionResult, Predictor]):
    """Rows of the only input, in batches."""

    def __init__(self, library: str) -> None:
        super().__init__(max_batch_size=256, large_model=False)  # one copy of code and weights as it is
        self._library = library

    def load_model(self) -> Predictor:
        """Open the library in a worker."""
        return Predictor(self._library)

    def run_inference(
        self, batch: Sequence[np.ndarray], model: Predictor, inference_args: Any = None
    ) -> Iterable[PredictionResult]:
        """Yield a result for each row."""
        found = model({model.model.inputs[0].name: np.stack(batch)})
        for k, row in enumerate(batch):
            yield PredictionResult(row, {name: array[k] for name, array in found.items()})


if __name__ == "__main__":
    image = np.load("examples/digits/seven.npy")[0]
    with beam.Pipeline() as pipeline:
        _ = (
            pipeline
            | beam.Create([image] * 100)
            | RunInference(CompiledModelHandler(sys.argv[1]))
            | beam.Map(lambda result: int(result.inference["probabilities"].argmax()))
            | beam.combiners.Count.PerElement()
            | beam.Map(print)
        )
