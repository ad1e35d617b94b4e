"""Programs for OpenVINO run with `aot.compat.openvino`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as theirs
import pytest

import aot
from aot.compat import openvino as ours
from aot.runtime.errors import UsageError

FOLDER = Path(__file__).parents[2] / "examples" / "digits"
SEVEN = np.load(FOLDER / "seven.npy")
# OpenVINO's models and queues live as long as the process: a model waits for its threads when it is deleted and keeps
# the interpreter's lock meanwhile, for which a thread may wait that leaves a callback.
KEPT: list[Any] = []


def program(ov: Any, path: Path) -> Any:
    """The same lines for both."""
    core = ov.Core()
    model = core.read_model(str(path))
    model.reshape({"image": [-1, 1, 8, 8]})
    compiled = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    request.start_async({0: np.concatenate([SEVEN, SEVEN])})
    request.wait()
    queue = ov.AsyncInferQueue(compiled, 2)
    KEPT.extend((compiled, request, queue))
    found: list[Any] = []
    queue.set_callback(lambda request, userdata: found.append((userdata, request.get_output_tensor(0))))
    for k in range(3):
        queue.start_async({"image": SEVEN}, k)
    queue.wait_all()
    output = compiled.output(0)
    facts = compiled.input(0).any_name, output.any_name, sorted(k for k, _ in found)
    return facts, compiled(SEVEN)[output], request.get_output_tensor(0)


def test_one_program_for_both() -> None:
    found, expected = (program(ov, FOLDER / "model.xml") for ov in (ours, theirs))
    assert found[0] == expected[0]
    np.testing.assert_allclose(found[1], expected[1], atol=1e-6)
    np.testing.assert_allclose(found[2], expected[2].data, atol=1e-6)


def test_a_model_is_compiled_again_after_reshape() -> None:
    core = ours.Core()
    model = core.read_model(FOLDER / "model.xml")
    for size, rows in ((1, 1), (3, 3), ((1, 8), 8)):
        model.reshape([size, 1, 8, 8])
        assert core.compile_model(model)(np.repeat(SEVEN, rows, 0))[0].shape == (rows, 10)
    with pytest.raises(UsageError, match="must be 1 to 8, got 9"):
        core.compile_model(model)(np.repeat(SEVEN, 9, 0))


def test_properties_of_the_core_hold_for_later_models(tmp_path: Path) -> None:
    core = ours.Core()
    core.set_property({"CACHE_DIR": str(tmp_path)})
    core.set_property("CPU", {"INFERENCE_NUM_THREADS": "1", "PERFORMANCE_HINT": "LATENCY"})
    assert core.get_property("CPU", "INFERENCE_NUM_THREADS") == 1
    assert core.compile_model(str(FOLDER / "model.xml")).threads == 1
    [library] = tmp_path.glob("*.so")
    assert core.compile_model(library, "AUTO:CPU")(SEVEN)[0].argmax() == 7
    assert core.import_model(library.read_bytes())(SEVEN)[0].argmax() == 7
    for streams, count in ((2, 2), ("1", 1), (0, 1), ("AUTO", 2)):
        made = core.compile_model(library, "CPU", {"NUM_STREAMS": streams, "INFERENCE_NUM_THREADS": 2})
        assert made.get_property("NUM_STREAMS") == count and made(SEVEN)[0].argmax() == 7
    for wrong in ({"NUM_STREAMS": "x"}, {"INFERENCE_PRECISION_HINT": "f16"}, {"PERFORMANCE_HINT": "x"}):
        with pytest.raises(UsageError, match=f"property: .*{next(iter(wrong))}"):
            core.compile_model(library, "CPU", wrong)
    with pytest.raises(UsageError, match=r"device: must be CPU or AUTO, got GPU\.0"):
        ours.compile_model(library, "GPU.0")
    with pytest.raises(UsageError, match="must be one of"):
        core.get_property("CPU", "NONE")


def test_old_names_of_properties() -> None:
    model = aot.compile_model(FOLDER / "model.xml")
    metrics, keys = model.get_property("SUPPORTED_METRICS"), model.get_property("SUPPORTED_CONFIG_KEYS")
    old = ["CPU_THREADS_NUM", "CPU_THROUGHPUT_STREAMS", "CPU_BIND_THREAD", "DEVICE_ID"]
    assert keys == ["INFERENCE_NUM_THREADS", "NUM_STREAMS", "PERF_COUNT", *old]
    assert "OPTIMAL_NUMBER_OF_INFER_REQUESTS" in metrics
    core = ours.Core()
    core.set_property({"PERF_COUNT": "YES", "CPU_BIND_THREAD": "NO"})
    made = core.compile_model(FOLDER / "model.xml", "CPU", {"CPU_THREADS_NUM": "1", "CPU_THROUGHPUT_STREAMS": "1"})
    assert (made.threads, made.get_property("PERF_COUNT"), core.get_property("CPU", "CPU_BIND_THREAD")) == (
        1,
        True,
        "NO",
    )
    made(SEVEN)
    assert made.get_runtime_model().get_ops()[1].seconds
    assert aot.compile_model(FOLDER / "model.xml", properties={"PERF_COUNT": True}).profiling
    with pytest.raises(UsageError, match=r"only INFERENCE_NUM_THREADS, .* can be set, got PERF_COUNTS"):
        aot.compile_model(FOLDER / "model.xml", properties={"PERF_COUNTS": True})
    assert model.input().element_type == model.output().element_type == "f32"
