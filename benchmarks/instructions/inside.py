"""Runs a model in the emulated Python, with one runtime and one thread: `python inside.py RUNTIME MODEL INPUTS.npz`.

The emulator's plugin counts from one call of `os.getppid` to the next. A language model gets a prompt, then a token.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

Run = Callable[[], Any]
Runs = Callable[[str, dict[str, Any]], Run | tuple[Run, Run]]
WARM_UP = 2


class Params(ctypes.Structure):
    """Parameters of llama.cpp, which begin with the number of tokens of a context."""

    _fields_ = [("context", ctypes.c_uint32), ("others", ctypes.c_byte * 1020)]


class Tokens(ctypes.Structure):
    """`llama_batch` of llama.cpp."""

    _fields_ = [("count", ctypes.c_int32), ("arrays", ctypes.c_void_p * 6)]


def ours(path: str, inputs: dict[str, Any]) -> Run:
    model = import_module("aot.runtime").load(path, threads=1)
    given = [inputs[info.name] for info in model.inputs]
    return lambda: model(*given)


def ours_language(path: str, inputs: dict[str, Any]) -> tuple[Run, Run]:
    generator = import_module("aot.runtime.generation.generator").Generator(
        import_module("aot.runtime").load(path, threads=1)
    )
    prompt = inputs["prompt"].tolist()

    def first() -> object:
        generator.reset()
        return generator.feed(prompt, chunk=len(prompt))

    return first, lambda: generator.feed(prompt[:1])


def llamacpp(path: str, inputs: dict[str, Any]) -> tuple[Run, Run]:
    folder = Path(os.environ["LD_LIBRARY_PATH"])
    ggml, llama = (ctypes.CDLL(str(next(folder.glob(f"lib{name}.*so*")))) for name in ("ggml", "llama"))
    ggml.ggml_backend_load_all_from_path(str(folder).encode())
    for name in ("llama_model_default_params", "llama_context_default_params"):
        getattr(llama, name).restype = Params
    for name in ("llama_model_load_from_file", "llama_init_from_model", "llama_get_memory", "llama_get_logits_ith"):
        getattr(llama, name).restype = ctypes.c_void_p
    llama.llama_batch_get_one.restype = Tokens
    model = ctypes.c_void_p(llama.llama_model_load_from_file(path.encode(), llama.llama_model_default_params()))
    params = llama.llama_context_default_params()
    params.context = 2 * inputs["prompt"].size
    context = ctypes.c_void_p(llama.llama_init_from_model(model, params))
    llama.llama_set_n_threads(context, 1, 1)
    words = inputs["words"].item()

    def fed(ids: Any) -> Any:
        data = np.ascontiguousarray(ids, np.int32)
        batch = llama.llama_batch_get_one(ctypes.c_void_p(data.ctypes.data), data.size)
        if code := llama.llama_decode(context, batch):
            raise SystemExit(f"llama_decode: {code}")
        found = llama.llama_get_logits_ith(context, -1)
        return np.ctypeslib.as_array(ctypes.cast(found, ctypes.POINTER(ctypes.c_float)), (words,))

    def first() -> object:
        llama.llama_memory_clear(ctypes.c_void_p(llama.llama_get_memory(context)), False)
        return fed(inputs["prompt"])

    return first, lambda: fed(inputs["prompt"][:1])


def onnxruntime(path: str, inputs: dict[str, Any]) -> Run:
    ort = import_module("onnxruntime")
    ort.set_default_logger_severity(3)
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)


def litert(path: str, inputs: dict[str, Any]) -> Run:
    model = import_module("ai_edge_litert.interpreter").Interpreter(path, num_threads=1)
    model.allocate_tensors()
    places = [(info["index"], inputs[info["name"]]) for info in model.get_input_details()]
    outputs = [info["index"] for info in model.get_output_details()]

    def run() -> list[object]:
        for index, value in places:
            model.set_tensor(index, value)
        model.invoke()
        return [model.get_tensor(index) for index in outputs]

    return run


RUNTIMES: dict[str, Runs] = {
    "ours": ours,
    "onnxruntime": onnxruntime,
    "litert": litert,
    "ours, language": ours_language,
    "llama.cpp": llamacpp,
}


def main(runtime: str, path: str, inputs: str) -> None:
    """Run the model a few times, the last time between calls that the plugin sees; print some logits."""
    made = RUNTIMES[runtime](path, dict(np.load(inputs)))
    steps = (made,) if callable(made) else made
    found: Any = None
    for _ in range(WARM_UP):
        for step in steps:
            step()
    os.getppid()
    for step in steps:
        found = step()
        os.getppid()
    print(np.asarray(found).reshape(-1)[:4] if len(steps) > 1 else "")


if __name__ == "__main__":
    main(*sys.argv[1:])
