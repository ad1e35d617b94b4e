"""`/v1/rerank` of `aot serve`: scores are those of the library; requests that are refused."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from aot.cli import app
from tests.frontends.huggingface.test_rankers import library
from tests.fuzz.bodies import RERANK, bodies
from tests.serve.conftest import listening

QUERY, TEXTS = "w5 w40", ["w7", "w9 w8", "w11"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library(tmp_path_factory.mktemp("rerank"))


@pytest.fixture(scope="module")
def url(path: Path, digits: Path) -> Iterator[str]:
    with listening(path, digits, max_batch=4, grpc_port=None) as server:
        yield f"http://127.0.0.1:{server.port}/v1"


def post(url: str, **body: object) -> httpx.Response:
    return httpx.post(f"{url}/rerank", json={"model": "m", "query": QUERY, **body}, timeout=60)


def test_scores_are_those_of_the_library(url: str, path: Path) -> None:
    told = json.loads(CliRunner().invoke(app, ["rerank", str(path), QUERY, *TEXTS, "--json"]).stdout)["results"]
    found: dict[str, Any] = post(url, documents=TEXTS).json()
    assert found["results"] == told and found["usage"] == {"prompt_tokens": 19, "total_tokens": 19}
    best = post(url, documents=[{"text": text} for text in TEXTS], top_n=2, return_documents=True).json()["results"]
    assert best == [{**one, "document": {"text": TEXTS[one["index"]]}} for one in told[:2]]
    assert [one["id"] for one in httpx.get(f"{url}/models").json()["data"]] == ["m"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "documents"),
        ({"documents": []}, "documents"),
        ({"documents": ["w5", {"title": "w7"}]}, "documents"),
        ({"documents": ["a"] * 2049}, "documents"),
        ({"documents": ["a"] * 2000, "query": "a" * 40_000}, "query"),
        ({"documents": ["w5"], "query": 5}, "query"),
        ({"documents": ["w5"], "top_n": 0}, "top_n"),
        ({"documents": ["w5"], "rank_fields": ["a"]}, "rank_fields"),
        ({"documents": ["w5"], "model": "digits"}, "must be a reranker"),
    ],
)
def test_other_requests_are_refused(url: str, body: dict[str, object], field: str) -> None:
    answer = post(url, **body)
    assert answer.status_code == 400 and field in answer.json()["error"]["message"]


def test_changed_bodies(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """Any body gets an order of texts, or an error in the form of the endpoint."""
    codes, count = Counter[int](), 150
    with httpx.Client(base_url=url.removesuffix("/v1"), timeout=60) as client:
        for path, body in islice(bodies(0, {"ranker": "m"}, (RERANK,)), count):
            found = client.post(path, content=body)
            codes[found.status_code] += 1
            assert found.status_code in {200, 400, 404, 413, 429}, (found.text, body[:2000])
            assert found.status_code == 200 or isinstance(found.json()["error"]["message"], str)
    assert codes[200] > count / 20 and codes[400] > count / 4
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR]
