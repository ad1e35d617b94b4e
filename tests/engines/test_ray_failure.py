"""Two nodes of Ray, and a worker that dies in the middle: no row is lost or doubled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import aot

pytest.importorskip("ray.data", exc_type=ImportError)

ROOT = Path(__file__).parents[2]
PROGRAM = """
import os, sys
from pathlib import Path
import numpy as np, ray
from ray.cluster_utils import Cluster
from runtime.predictor import Predictor

class Fragile(Predictor):
    def __call__(self, batch):
        if 700 in batch["id"]:
            try:
                Path(sys_argv[2]).touch(exist_ok=False)
                os._exit(1)
            except FileExistsError:
                pass
        return {"id": batch["id"], **super().__call__(batch)}

sys_argv = sys.argv
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
cluster.add_node(num_cpus=1)
ray.init(address=cluster.address, log_to_driver=False)
images = np.repeat(np.load("examples/digits/seven.npy").reshape(1, 64), 1000, 0)
table = ray.data.from_items([{"id": k, "image": images[k]} for k in range(1000)], override_num_blocks=10)
options = {"compute": ray.data.ActorPoolStrategy(size=2), "batch_size": 50, "num_cpus": 0.1}
found = table.map_batches(Fragile, fn_constructor_args=(sys.argv[1],), **options).take_all()
print(len(ray.nodes()), Path(sys.argv[2]).exists(), sorted(r["id"] for r in found) == list(range(1000)),
      {int(r["probabilities"].argmax()) for r in found}, flush=True)
ray.shutdown()
cluster.shutdown()
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_worker_dies(tmp_path: Path) -> None:
    shapes, dims = {"image": ("n", 1, 8, 8)}, {"n": (1, 64)}
    model = ROOT / "examples" / "digits" / "model.xml"
    aot.compile_model(model, output=tmp_path / "m.so", shapes=shapes, dims=dims)
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, tmp_path / "program.py", tmp_path / "m.so", tmp_path / "died"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "2 True True {7}" in done.stdout.splitlines()  # Ray may log behind it
