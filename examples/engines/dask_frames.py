"""Dask: a Predictor travels to the workers as path and hash."""

import sys

import numpy as np
from dask.distributed import Client, LocalCluster

from runtime.predictor import Predictor

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        images = np.repeat(np.load("examples/digits/seven.npy"), 500, 0)
        predictor = client.scatter(Predictor(sys.argv[1]), broadcast=True)
        parts = [client.submit(lambda p, x: p({"image": x}), predictor, x, pure=False) for x in np.split(images, 10)]
        found = np.concatenate([part["probabilities"] for part in client.gather(parts)])
        print(len(found), set(found.argmax(axis=1).tolist()))
