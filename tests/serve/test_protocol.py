"""The endpoints of the protocol, asked by NVIDIA's clients, over HTTP and gRPC."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import ml_dtypes
import numpy as np
import pytest

import runtime
from tests.serve.conftest import listening

# Making a client takes longer than most tests.
CLIENT = httpx.Client(timeout=120, limits=httpx.Limits(max_keepalive_connections=0))

WAYS = ("http", "grpc")
NUMBERS = {
    "a": ("BOOL", np.array([True, False, True])),
    **{
        name: (kind, np.array([1, 2, 100], kind.lower()))
        for name, kind in zip("bcdefghi", "INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64".split(), strict=True)
    },
    "j": ("FP16", np.array([1.5, -2, 3], np.float16)),
    "k": ("FP32", np.array([1.5, -2, np.inf], np.float32)),
    "l": ("FP64", np.array([1e300, -2, 3])),
    "m": ("BF16", np.array([1.5, -2, 3], ml_dtypes.bfloat16)),
}


class Client:
    """NVIDIA's client of either way, with what both return as dictionaries."""

    def __init__(self, way: str, port: int) -> None:
        self.way, self.port = way, port
        self.module: Any = import_module(f"tritonclient.{way}")
        self.client = self.module.InferenceServerClient(f"127.0.0.1:{port}")

    def ask(self, method: str, *args: object) -> Any:
        plain = {"as_json": True} if self.way == "grpc" and method.startswith("get") else {}
        return getattr(self.client, method)(*args, **plain)

    def infer(self, model: str, arrays: dict[str, tuple[str, Any]], binary: bool = True, **more: Any) -> Any:
        inputs = []
        for name, (kind, array) in arrays.items():
            one = self.module.InferInput(name, list(array.shape), kind)
            one.set_data_from_numpy(array, **({} if self.way == "grpc" else {"binary_data": binary}))
            inputs.append(one)
        if "outputs" in more:
            extra = {} if self.way == "grpc" else {"binary_data": binary}
            more["outputs"] = [self.module.InferRequestedOutput(name, **extra) for name in more["outputs"]]
        return self.client.infer(model, inputs, **more)


@pytest.fixture(scope="module", params=WAYS)
def client(request: pytest.FixtureRequest, models: Path, digits: Path) -> Iterator[Client]:
    with listening(models, digits) as server:
        port = server.port if request.param == "http" else server.grpc_port
        assert port is not None
        made = Client(request.param, port)
        yield made
        made.client.close()


def image(rows: int) -> Any:
    return np.random.default_rng(rows).standard_normal((rows, 1, 8, 8)).astype(np.float32)


@pytest.mark.parametrize("method", ["is_server_live", "is_server_ready", "is_model_ready"])
def test_the_server_and_its_model_are_ready(client: Client, method: str) -> None:
    assert client.ask(method, *(["digits"] if "model" in method else [])) is True


def test_unknown_models_are_not_ready(client: Client) -> None:
    assert client.ask("is_model_ready", "none") is False
    assert client.ask("is_model_ready", "digits", "2") is False


def test_metadata_describe_server_and_model(client: Client) -> None:
    found = client.ask("get_model_metadata", "digits")
    assert (found["name"], found["versions"], found["platform"]) == ("digits", ["1"], "aot_so")
    [one] = found["inputs"]
    assert (one["name"], one["datatype"], [int(n) for n in one["shape"]]) == ("image", "FP32", [-1, 1, 8, 8])
    assert "binary_tensor_data" in client.ask("get_server_metadata")["extensions"]
    config = client.ask("get_model_config", "digits")
    assert config.get("config", config)["backend"] == "aot"


def test_results_are_those_of_the_runtime(client: Client, digits: Path) -> None:
    x = image(3)
    answer = client.infer("digits", {"image": ("FP32", x)}, request_id="r 7")
    assert answer.as_numpy("probabilities").tobytes() == runtime.load(digits)(x)[0].tobytes()
    response = answer.get_response()
    assert (response["id"] if client.way == "http" else response.id) == "r 7"


@pytest.mark.parametrize("binary", [True, False])
def test_every_element_type(client: Client, binary: bool) -> None:
    given = {n: v for n, v in NUMBERS.items() if binary or v[0] not in ("FP16", "BF16")}
    if not binary and client.way == "http":  # the client cannot say these in JSON: the server can
        given |= {"j": NUMBERS["j"], "m": NUMBERS["m"]}
        answer = json_answer(client, given)
    else:
        found = client.infer("types", NUMBERS, binary)
        answer = {f"o{name}": found.as_numpy(f"o{name}") for name in NUMBERS}
    for name, (kind, array) in NUMBERS.items():
        wanted = ~array if kind == "BOOL" else array + array
        np.testing.assert_array_equal(answer[f"o{name}"], wanted, err_msg=kind)


def json_answer(client: Client, given: dict[str, tuple[str, Any]]) -> dict[str, Any]:
    inputs = [{"name": n, "datatype": k, "shape": [3], "data": np.array(a).tolist()} for n, (k, a) in given.items()]
    url = f"http://127.0.0.1:{client.port}/v2/models/types/infer"
    found = CLIENT.post(url, content=json.dumps({"inputs": inputs})).raise_for_status()
    return {o["name"]: np.array(o["data"]) for o in json.loads(found.content)["outputs"]}


@pytest.mark.parametrize("binary", [True, False])
def test_outputs_of_strings_are_texts(client: Client, binary: bool) -> None:
    answer = client.infer("labels", {"x": ("INT64", np.array([2, 0, 1]))}, binary, outputs=["y"])
    texts = [t.decode() if isinstance(t, bytes) else t for t in answer.as_numpy("y")]
    assert texts == ["two", "", "hé"]


def test_only_the_outputs_asked_for(client: Client) -> None:
    x = np.ones((2, 4), np.float32)
    answer = client.infer("pair", {"x": ("FP32", x), "y": ("FP32", 3 * x)}, outputs=["d"])
    assert (answer.as_numpy("d") == -2).all()
    assert answer.as_numpy("s") is None


@pytest.mark.parametrize(
    ("model", "inputs", "more", "says"),
    [
        ("none", {"image": ("FP32", image(1))}, {}, "model 'none': must be one that is loaded"),
        ("digits", {"image": ("FP32", image(1))}, {"model_version": "9"}, "version '9'"),
        ("digits", {"picture": ("FP32", image(1))}, {}, "must be one of image, got 'picture'"),
        ("digits", {"image": ("FP64", image(1).astype(np.float64))}, {}, "datatype must be FP32, got FP64"),
        ("digits", {"image": ("FP32", image(1)[0])}, {}, "expected f32[n,1,8,8], got f32[1,8,8]"),
        ("digits", {"image": ("FP32", image(65))}, {}, "dimension 0 'n' must be 1 to 64, got 65"),
        ("digits", {"image": ("FP32", image(1))}, {"outputs": ["y"]}, "must be one of probabilities, got 'y'"),
        ("digits", {"image": ("FP32", image(1))}, {"sequence_id": 5}, "sequence_id must be left out"),
        ("digits", {"image": ("FP32", image(1))}, {"request_id": "x" * 300}, "at most 256 characters"),
        ("pair", {"x": ("FP32", np.ones((1, 4), np.float32))}, {}, "input 'y': must be given"),
        (
            "pair",
            {"x": ("FP32", np.ones((1, 4), np.float32)), "y": ("FP32", np.ones((2, 4), np.float32))},
            {},
            "must be 1, as 'n' is in dimension 0 of input 'x', got 2",
        ),
    ],
)
def test_wrong_requests_say_what_is_wrong(client: Client, model: str, inputs: Any, more: Any, says: str) -> None:
    with pytest.raises(import_module("tritonclient.utils").InferenceServerException) as error:
        client.infer(model, inputs, **more)
    assert says in str(error.value)


def test_statistics_count(client: Client) -> None:
    before = statistics(client)
    client.infer("softmax", {"x": ("FP32", np.ones((1, 4), np.float32))})
    with pytest.raises(Exception, match="datatype"):
        client.infer("softmax", {"x": ("INT32", np.ones((1, 4), np.int32))})
    after = statistics(client)
    assert [int(after[k].get("count", 0)) - int(before[k].get("count", 0)) for k in ("success", "fail")] == [1, 1]
    assert int(after["compute_infer"]["ns"]) > 0


def statistics(client: Client) -> Any:
    [one] = client.ask("get_inference_statistics", "softmax")["model_stats"]
    return one["inference_stats"]


def test_models_can_be_unloaded_and_loaded(client: Client) -> None:
    client.ask("unload_model", "square")
    assert client.ask("is_model_ready", "square") is False
    index = client.ask("get_model_repository_index")
    states = {e["name"]: e["state"] for e in (index if client.way == "http" else index["models"])}
    assert (states["square"], states["pair"]) == ("UNAVAILABLE", "READY")
    client.ask("load_model", "square")
    assert client.ask("is_model_ready", "square") is True
    with pytest.raises(Exception, match="must have a file in the repository"):
        client.ask("load_model", "none")
    with pytest.raises(Exception, match="must have no parameters"):
        client.client.load_model("square", config="{}")


def test_a_stream_goes_on_after_an_error(client: Client) -> None:
    if client.way == "http":
        client = Client("http", 1)  # the protocol has streams over gRPC only
        assert not hasattr(client.client, "start_stream")
        return
    found: list[Any] = []
    client.client.start_stream(lambda result, error: found.append(error or result.as_numpy("probabilities").shape))
    for kind, rows in (("FP32", 1), ("FP64", 1), ("FP32", 2)):
        one = client.module.InferInput("image", [rows, 1, 8, 8], kind)
        one.set_data_from_numpy(image(rows).astype(kind.replace("FP", "float")))
        client.client.async_stream_infer("digits", [one])
    client.client.stop_stream()
    assert [str(f) for f in found[::2]] == ["(1, 10)", "(2, 10)"]
    assert "datatype must be FP32" in str(found[1])


def test_typed_contents_of_grpc(models: Path) -> None:
    """Messages as clients of other languages write them, without raw bytes."""
    pb, stubs = (import_module(f"tritonclient.grpc.service_pb2{end}") for end in ("", "_grpc"))
    fields = {"INT8": "int", "INT16": "int", "INT32": "int", "INT64": "int64", "BOOL": "bool"}
    fields |= {"UINT8": "uint", "UINT16": "uint", "UINT32": "uint", "UINT64": "uint64", "FP32": "fp32", "FP64": "fp64"}
    with listening(models) as server, import_module("grpc").insecure_channel(f"127.0.0.1:{server.grpc_port}") as way:
        request = pb.ModelInferRequest(model_name="types")
        for name, (kind, array) in NUMBERS.items():
            tensor = request.inputs.add(name=name, datatype=kind, shape=[3])
            getattr(tensor.contents, f"{fields.get(kind, 'fp32')}_contents").extend(array.tolist())
        answer = stubs.GRPCInferenceServiceStub(way).ModelInfer(request)
        at = [o.name for o in answer.outputs].index("oe")
        assert np.frombuffer(answer.raw_output_contents[at], np.int64).tolist() == [2, 4, 200]


def test_answers_are_sent_at_once(models: Path) -> None:
    """Head and body are sent one after another: with Nagle's algorithm the body would wait for an acknowledgement."""
    found: list[int] = []
    with listening(models / "pair.so") as server, httpx.Client() as client:
        client.get(f"http://127.0.0.1:{server.port}/v2").raise_for_status()
        for descriptor in os.listdir("/proc/self/fd"):
            with suppress(OSError), socket.socket(fileno=os.dup(int(descriptor))) as one:
                if one.getsockname()[1:2] == (server.port,) and one.getpeername():
                    found.append(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
    assert found == [1]
