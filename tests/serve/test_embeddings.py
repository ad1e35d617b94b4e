"""`/v1/embeddings` of `aot serve`: vectors are those of the library; requests that are refused."""

from __future__ import annotations

import base64
import json
import logging
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

from aot.cli import app
from tests.frontends.huggingface.test_encoders import library
from tests.fuzz.bodies import EMBEDDINGS, bodies
from tests.serve.conftest import listening

TEXTS = ["w5 w40", "w7", "w9 w8"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library(tmp_path_factory.mktemp("embeddings"))


@pytest.fixture(scope="module")
def url(path: Path, digits: Path) -> Iterator[str]:
    with listening(path, digits, max_batch=4, grpc_port=None) as server:
        yield f"http://127.0.0.1:{server.port}/v1"


def post(url: str, **body: object) -> httpx.Response:
    return httpx.post(f"{url}/embeddings", json={"model": "m", **body}, timeout=60)


def test_vectors_are_those_of_the_library(url: str, path: Path) -> None:
    told = CliRunner().invoke(app, ["embed", str(path), *TEXTS]).stdout.splitlines()
    found: dict[str, Any] = post(url, input=TEXTS).json()
    assert [one["embedding"] for one in found["data"]] == [json.loads(line) for line in told]
    assert [(one["object"], one["index"]) for one in found["data"]] == [("embedding", n) for n in range(3)]
    assert found["usage"] == {"prompt_tokens": 11, "total_tokens": 11} and found["object"] == "list"
    packed = post(url, input=TEXTS[0], encoding_format="base64", user="me").json()["data"][0]["embedding"]
    assert np.array_equal(np.frombuffer(base64.b64decode(packed), "<f4"), np.float32(found["data"][0]["embedding"]))
    assert [one["id"] for one in httpx.get(f"{url}/models").json()["data"]] == ["m"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "input"),
        ({"input": []}, "input"),
        ({"input": [5, 40]}, "input"),
        ({"input": ["a"] * 2049}, "input"),
        ({"input": "w5", "encoding_format": "int8"}, "encoding_format"),
        ({"input": "w5", "dimensions": 8}, "dimensions"),
        ({"input": "w5", "model": "digits"}, "must be an encoder"),
    ],
)
def test_other_requests_are_refused(url: str, body: dict[str, object], field: str) -> None:
    answer = post(url, **body)
    assert answer.status_code == 400 and field in answer.json()["error"]["message"]


@pytest.mark.parametrize(("seed", "count"), [(0, 60), pytest.param(1, 300, marks=pytest.mark.slow)])
def test_changed_bodies(url: str, caplog: pytest.LogCaptureFixture, seed: int, count: int) -> None:
    """Any body gets vectors, or an error in the form of the endpoint."""
    codes = Counter[int]()
    with httpx.Client(base_url=url.removesuffix("/v1"), timeout=60) as client:
        for path, body in islice(bodies(seed, {"encoder": "m"}, (EMBEDDINGS,)), count):
            found = client.post(path, content=body)
            codes[found.status_code] += 1
            assert found.status_code in {200, 400, 404, 413, 429}, (found.text, body[:2000])
            assert found.status_code == 200 or isinstance(found.json()["error"]["message"], str)
    assert codes[200] > count / 20 and codes[400] > count / 4
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR]


@pytest.mark.parametrize("command", ["chat", "generate"])
def test_an_encoder_does_not_talk(command: str, path: Path) -> None:
    for model in (path, path.with_name("m")):  # the folder that it is made of
        told = CliRunner().invoke(app, [command, str(model), "w5"])
        assert told.exit_code == 2 and "got an encoder" in told.stderr and "aot embed" in told.stderr
