"""Bodies of clients that are changed at random: an answer or an error in the form of the endpoint, never a fault."""

from __future__ import annotations

import json
import logging
from collections import Counter
from itertools import islice
from pathlib import Path

import httpx
import pytest

from tests.fuzz.bodies import bodies
from tests.serve.conftest import listening
from tests.text import talking

NAMES = {"language": "talk", "infer": "softmax", "input": "x", "shape": [1, 4], "data": [1, 2, 3, 4], "output": "y"}
REFUSED = {400, 404, 413, 429, 504}


@pytest.mark.parametrize(("seed", "count"), [(0, 60), pytest.param(1, 300, marks=pytest.mark.slow)])
def test_changed_bodies(models: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int, count: int) -> None:
    codes = Counter[int]()
    with (
        listening(models / "softmax.so", talking.library(tmp_path), max_context=60, grpc_port=None) as server,
        httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=60) as client,
    ):
        for path, body in islice(bodies(seed, NAMES), count):
            found = client.post(path, content=body)
            codes[found.status_code] += 1
            assert found.status_code in {200} | REFUSED, (found.text, body[:2000])
            if found.status_code != 200:
                error = json.loads(found.content)["error"]
                assert isinstance(error["message"] if path.startswith("/v1") else error, str)
        assert client.get("/v2/health/ready").status_code == 200
    assert codes[200] > count / 20 and codes[400] > count / 4
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR]
