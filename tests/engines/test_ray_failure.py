"""Two nodes of Ray, and a worker or a whole node that dies in the middle: no row is lost or doubled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engines.programs import run

pytest.importorskip("ray.data", exc_type=ImportError)

PROGRAM = '''
import json, os, sys, time
from pathlib import Path
import numpy as np, ray
from ray.cluster_utils import Cluster
from aot.runtime.predictor import Predictor

library, folder, victim = sys.argv[1], Path(sys.argv[2]), sys.argv[3]

class Fragile(Predictor):
    """A predictor on each node, both at work before the second one dies at its third batch."""

    calls = 0

    def __call__(self, batch):
        node = ray.get_runtime_context().get_node_id()
        (folder / node).touch()
        end = time.monotonic() + 300
        while len(list(folder.iterdir())) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        self.calls += 1
        if node == second and self.calls == 3 and not died.exists():
            died.touch()
            os.kill(raylet if victim == "node" else os.getpid(), 9)
            time.sleep(600)  # until Ray ends the workers of a dead node
        rows = super().__call__(batch)
        return {"id": batch["id"], "node": np.full(len(batch["id"]), node), **rows}

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
node = cluster.add_node(num_cpus=1)
ray.init(address=cluster.address, log_to_driver=False)
second, died = node.node_id, folder.with_name("died")
raylet = node.all_processes["raylet"][0].process.pid
images = np.repeat(np.load("examples/digits/seven.npy").reshape(1, 64), 1000, 0)
table = ray.data.from_items([{"id": k, "image": images[k]} for k in range(1000)], override_num_blocks=20)
options = {"compute": ray.data.ActorPoolStrategy(size=2), "batch_size": 25, "num_cpus": 0.1}
rows = table.map_batches(Fragile, fn_constructor_args=(library,), scheduling_strategy="SPREAD", **options).take_all()
result = {
    "nodes": sum(n["Alive"] for n in ray.nodes()),
    "died": died.exists(),
    "ids": sorted(r["id"] for r in rows),
    "workers": len({r["node"] for r in rows}),
    "digits": sorted({int(r["probabilities"].argmax()) for r in rows}),
}
print(json.dumps(result), flush=True)
ray.shutdown()
cluster.shutdown()
'''


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("victim", ["worker", "node"])
def test_one_dies(victim: str, library: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "working").mkdir()
    printed = run(tmp_path / "program.py", library, tmp_path / "working", victim)
    [line] = [line for line in printed if line.startswith('{"nodes"')]
    result = json.loads(line)
    assert result.pop("ids") == list(range(1000))
    assert result["digits"] == [7] and result["died"]
    if victim == "worker":
        assert (result["nodes"], result["workers"]) == (2, 2)
    else:
        assert result["nodes"] == 1  # what the dead node had done may have been done again on the other
