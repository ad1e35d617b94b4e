"""Ray Serve: replicas open the library; requests are batched, and a row has the bits it has alone."""

import sys

import numpy as np
import ray
from ray import serve

from runtime.predictor import Predictor


@serve.deployment(num_replicas=2, ray_actor_options={"num_cpus": 0.1})
class Digits:
    """A replica."""

    def __init__(self, library: str) -> None:
        self.predictor = Predictor(library)

    @serve.batch(max_batch_size=32, batch_wait_timeout_s=0.005)
    async def read(self, images: list[np.ndarray]) -> list[int]:
        """Return the digits of images that arrived together."""
        found = self.predictor({"image": np.stack(images)})
        return found["probabilities"].argmax(axis=1).tolist()

    async def __call__(self, image: np.ndarray) -> int:
        return await self.read(image)


if __name__ == "__main__":
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    handle = serve.run(Digits.bind(sys.argv[1]), route_prefix=None)
    seven = np.load("examples/digits/seven.npy")[0]
    print(sorted({waiting.result() for waiting in [handle.remote(seven) for _ in range(100)]}))
    serve.shutdown()
