"""Properties of a model; memory given back; pickles."""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import numpy as np
import pytest

import runtime
from aot.compilation.recorded_options import recorded_options
from aot.options import CompileOptions
from aot.runtime.errors import CorruptError, UsageError
from tests.programs import built, chain

X = np.arange(1000, dtype=np.float32)


def test_all_supported_properties_have_values(chain_so: Path) -> None:
    model = runtime.load(chain_so, threads=1)
    facts = {name: model.get_property(name) for name in model.supported_properties}
    assert facts["SUPPORTED_PROPERTIES"] == list(model.supported_properties)
    assert facts["NETWORK_NAME"] == facts["MODEL_NAME"] == "chain net"
    assert facts["EXECUTION_DEVICES"] == ["CPU"] and facts["INFERENCE_PRECISION_HINT"] == "f32"
    assert facts["COMPILE_OPTIONS"] == {"level": 1}
    assert len(str(facts["MODEL_HASH"])) == 64
    model.set_property({"INFERENCE_NUM_THREADS": 2})
    assert model.get_property("INFERENCE_NUM_THREADS") == model.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS") == 2
    for wrong, words in (
        ({"NETWORK_NAME": "x"}, "read-only"),
        ({"A": 1}, "unknown"),
        ({"INFERENCE_NUM_THREADS": True}, "an integer"),
    ):
        with pytest.raises(UsageError, match=words):
            model.set_property(wrong)
    with pytest.raises(UsageError, match="one of SUPPORTED_PROPERTIES, NETWORK_NAME"):
        model.get_property("A")


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("PERF_COUNT", "YES", True),
        ("PERF_COUNT", False, False),
        ("CPU_THREADS_NUM", "3", 3),
        ("INFERENCE_NUM_THREADS", "2", 2),
        ("CPU_THROUGHPUT_STREAMS", "CPU_THROUGHPUT_AUTO", 2),
        ("CPU_THROUGHPUT_STREAMS", 1, 1),
        ("CPU_BIND_THREAD", "YES", "NO"),
        ("DEVICE_ID", "0", ""),
    ],
)
def test_keys_of_earlier_releases(chain_so: Path, name: str, value: object, wanted: object) -> None:
    model = runtime.load(chain_so, threads=2)
    model.set_property({name: value})
    assert model.get_property(name) == wanted and name in model.supported_properties


@pytest.mark.parametrize(
    ("name", "value"),
    [("PERF_COUNT", 1), ("CPU_BIND_THREAD", "MAYBE"), ("DEVICE_ID", "1"), ("CPU_THREADS_NUM", "many")],
)
def test_wrong_values_of_these(chain_so: Path, name: str, value: object) -> None:
    with pytest.raises(UsageError, match=f"{name} must be"):
        runtime.load(chain_so, threads=1).set_property({name: value})


def test_the_graph_of_what_runs(chain_so: Path) -> None:
    model = runtime.load(chain_so, threads=1)
    request = model.create_infer_request()
    plain = model.get_runtime_model()
    kinds = [layer.get_rt_info()["layerType"] for layer in plain.get_ordered_ops()]
    assert (kinds[0], kinds[-1], len(kinds)) == ("Parameter", "Result", len(model.manifest.calls) + 2)
    assert plain.get_friendly_name() == "chain net" and plain.layers[0].layout == "a"
    assert [layer.layers for layer in plain.get_ops()[1:-1]] == [call.layers for call in model.manifest.calls]
    assert {layer.get_rt_info()["execTimeMcs"] for layer in plain.layers} == {"not_executed"}
    model.set_property({"PERF_COUNT": True})
    request.infer(X)
    model(X)
    assert len(request.get_profiling_info()) == len(model.manifest.calls), "requests of before are measured, too"
    times = [layer.seconds for layer in model.get_runtime_model().layers[1:-1]]
    assert all(seconds is not None and seconds > 0 for seconds in times)
    model.set_property({"PERF_COUNT": "NO"})
    with pytest.raises(UsageError, match="enable_profiling"):
        request.get_profiling_info()


def test_values_and_extensions_are_recorded_by_name() -> None:
    options = CompileOptions(values=(("k", 5), ("t", (1.0, 2.0))), extensions=Path("/some/where/mine"))
    assert recorded_options(options, 0).items() >= {"values": ["k", "t"], "extensions": ["mine"]}.items()


def test_release_memory(chain_so: Path) -> None:
    model = runtime.load(chain_so, threads=2)
    request = model.create_infer_request()
    for given in (X, X[::-1], np.repeat(X, 2)[::2]):
        np.testing.assert_array_equal(request.infer(given)[0], given * 32)
        np.testing.assert_array_equal(model(given)[0], given * 32)
        model.release_memory()
        assert request._space.arena.nbytes == 0
    np.testing.assert_array_equal(request.infer()[0], X * 32)


def test_a_pickled_model_is_its_path_and_options(tmp_path: Path) -> None:
    path = tmp_path / "m.so"
    built(chain()).write_shared(path)
    model = runtime.load(path, threads=1)
    data = pickle.dumps(model)
    assert len(data) < 500
    again = pickle.loads(data)
    assert (again.threads, again.content_hash) == (1, model.content_hash)
    np.testing.assert_array_equal(again(X)[0], X * 4)
    built(chain(factor=3.0)).write_shared(path)
    with pytest.raises(CorruptError, match=f"must be the model with hash {model.content_hash}"):
        pickle.loads(data)


def test_a_model_in_memory_is_exported_not_pickled(chain_so: Path) -> None:
    model = runtime.import_model(chain_so.read_bytes())
    np.testing.assert_array_equal(model(X)[0], X * 32)
    with pytest.raises(UsageError, match="see export_model"):
        pickle.dumps(model)
    stream = io.BytesIO()
    model.export_model(stream)
    assert stream.getvalue() == chain_so.read_bytes()
