"""The Open Inference Protocol (KServe v2), apart from its transport: requests, answers, metadata of the server."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field

from aot.codegen.dataclass import dataclass
from aot.runtime.arrays.tensors import Array
from aot.runtime.errors import UsageError
from aot.runtime.loading.manifest import TensorInfo
from aot.runtime.version import VERSION
from aot.serve.batching import Named
from aot.serve.datatypes import metadata_of
from aot.serve.faults import TooLargeError, http_status
from aot.serve.metrics import Times
from aot.serve.repository import Repository
from aot.serve.served_model import ServedModel

PLATFORM = "aot_so"
EXTENSIONS = ("binary_tensor_data", "model_repository", "statistics", "model_configuration")
_MAX_ID = 256
_NUMBER_BYTES = 25  # longest number in JSON: -1.7976931348623157e+308 and a comma
_CHARACTER_BYTES = 6  # longest character in JSON: an escape such as \u00e9
# Parameters of requests, inputs and outputs, by how they begin, that would change an answer: Triton's sequences,
# regions of shared memory, and classes instead of tensors.
_REFUSED = ("sequence_", "shared_memory_", "classification")


@dataclass(slots=True)
class Call:
    """A request: arrays by input, and the requested outputs; none: all."""

    inputs: Named
    outputs: list[TensorInfo]
    id: str = ""
    timeout: float | None = None
    binary: set[str] = field(default_factory=set[str])  # outputs to be sent as raw bytes


@dataclass(slots=True)
class Answer:
    """Results of a call, in the order of its outputs."""

    served: ServedModel
    results: Named
    times: Times


async def answer(served: ServedModel, read: Callable[[], Awaitable[Call]], most: int) -> tuple[Call, Answer]:
    """Read a request and infer it; count it, whatever comes of it. TooLargeError for an answer above `most` bytes."""
    begin, times, status = time.monotonic(), None, 500
    try:
        call = await read()
        results, times = await served.infer(call.inputs, call.timeout)
        _check_size(call, results, most)
        status = 200
        return call, Answer(served, results, times)
    except Exception as error:  # every failure is counted, and goes on to the answer
        status = http_status(error)
        raise
    finally:
        served.metrics.answered(status, time.monotonic() - begin, times)


def facts(call: Call, answer: Answer, way: str) -> dict[str, object]:
    """Return the fields of a log about a request; times are in seconds."""
    spent = {"queued": round(answer.times.queued, 6), "computed": round(answer.times.computed, 6)}
    return {"model": answer.served.name, "version": answer.served.version, "id": call.id, "protocol": way, **spent}


def checked_id(text: object) -> str:
    """Return the id of a request; UsageError unless it is a short text."""
    if not isinstance(text, str) or len(text) > _MAX_ID:
        raise UsageError(f"request: id must be a text of at most {_MAX_ID} characters, got another")
    return text


def timeout_of(parameters: Mapping[str, object]) -> float | None:
    """Return the seconds that a request allows, Triton's parameter `timeout` in microseconds; None without one."""
    value = parameters.get("timeout")
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value) or value < 0:
        raise UsageError(f"request: timeout must be a number of microseconds, got {str(value)[:20]}")
    return value * 1e-6 or None


def check_parameters(what: str, parameters: Mapping[str, object]) -> None:
    """Raise UsageError for a parameter that asks for another answer than the one that would be given.

    Each request begins with the initial state, its tensors come with it, and its outputs go back as they are.
    """
    for name, value in parameters.items():
        if name.startswith(_REFUSED) and value not in (None, 0, ""):
            raise UsageError(f"{what}: parameter {name[:40]} must be left out, as it is not supported, got one")


def outputs_of(served: ServedModel, names: list[str]) -> list[TensorInfo]:
    """Return the outputs of these names, all for none; UsageError for a name that is not one, and for one twice."""
    known = {info.name: info for info in served.outputs}
    tensor_infos = dict[str, TensorInfo]()
    for name in names:
        if name not in known:
            raise UsageError(f"output: must be one of {', '.join(known)}, got '{name[:80]}'")
        if name in tensor_infos:
            raise UsageError(f"output '{name}': must be asked for once, got another")
        tensor_infos[name] = known[name]
    return list(tensor_infos.values()) if names else list(served.outputs)


def input_of(served: ServedModel, name: str) -> TensorInfo:
    """Return the input of this name; UsageError if there is none."""
    for info in served.inputs:
        if info.name == name:
            return info
    names = ", ".join(info.name for info in served.inputs)
    raise UsageError(f"input: must be one of {names}, got '{name[:80]}'")


def _check_size(call: Call, results: Named, most: int) -> None:
    size = sum(_bytes_of(results[info.name], info.name in call.binary) for info in call.outputs)
    if size > most:
        rule = f"must have at most {most} bytes (--max-answer), {_NUMBER_BYTES} for a number in JSON"
        raise TooLargeError(f"answer: {rule}, got {size}; next: ask for fewer rows or outputs, or for binary data")


def _bytes_of(array: Array, binary: bool) -> int:
    """Return the bytes of a result in an answer, at most."""
    if array.dtype == object:
        return sum(len(text) + 1 for text in array.flat) * _CHARACTER_BYTES
    return array.nbytes if binary else array.size * _NUMBER_BYTES


def server_metadata() -> dict[str, object]:
    """Return name, version and extensions of the server."""
    return {"name": "aot", "version": VERSION, "extensions": list(EXTENSIONS)}


def model_metadata(repository: Repository, served: ServedModel) -> dict[str, object]:
    """Return name, versions, inputs and outputs of a model."""
    return {
        "name": served.name,
        "versions": repository.versions(served.name),
        "platform": PLATFORM,
        "inputs": [metadata_of(info) for info in served.inputs],
        "outputs": [metadata_of(info) for info in served.outputs],
    }


def model_config(served: ServedModel) -> dict[str, object]:
    """Return a model's configuration as Triton's extension describes it: sizes without the batch, if there is one."""
    skipped = 1 if served.max_batch > 1 else 0

    def tensor(info: TensorInfo) -> dict[str, object]:
        facts = metadata_of(info)
        kind = str(facts["datatype"]).replace("BYTES", "STRING")
        dims = [dim if isinstance(dim, int) else -1 for dim in info.shape[skipped:]]
        return {"name": info.name, "data_type": f"TYPE_{kind}", "dims": dims}

    return {
        "name": served.name,
        "platform": PLATFORM,
        "backend": "aot",
        "max_batch_size": served.max_batch if skipped else 0,
        "input": [tensor(info) for info in served.inputs],
        "output": [tensor(info) for info in served.outputs],
    }
