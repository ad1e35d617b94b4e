"""The runtimes, each loaded as its own documentation says, and called through its Python API.

An engine is imported in its own worker only: none of them shares a process with another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from benchmarks.networks.folder import Array, placed

Run = Callable[[], object]  # one inference


def ours(path: Path, inputs: Mapping[str, Array], threads: int) -> tuple[Run, Callable[[], list[Array]]]:
    """A compiled model; the compiler is not imported."""
    import runtime  # noqa: PLC0415

    model = runtime.load(path, threads)
    given = placed([{info.name, *info.names} for info in model.inputs], inputs)
    return lambda: model(given), lambda: list(model(given).to_tuple())


def openvino(path: Path, inputs: Mapping[str, Array], threads: int) -> tuple[Run, Callable[[], list[Array]]]:
    """OpenVINO's CPU plug-in in f32, for latency."""
    import openvino as ov  # noqa: PLC0415

    config = {
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    }
    model = ov.Core().compile_model(str(path), "CPU", config)
    ports = [{*port.get_names(), port.get_node().get_friendly_name()} for port in model.inputs]
    given = placed(ports, inputs)
    return lambda: model(given), lambda: [np.array(model(given)[i]) for i in range(len(model.outputs))]


def openvino_as_installed(
    path: Path, inputs: Mapping[str, Array], threads: int
) -> tuple[Run, Callable[[], list[Array]]]:
    """OpenVINO's CPU plug-in with its defaults: the precision and the quantisation that it chooses itself."""
    import openvino as ov  # noqa: PLC0415

    model = ov.Core().compile_model(str(path), "CPU", {"INFERENCE_NUM_THREADS": threads})
    ports = [{*port.get_names(), port.get_node().get_friendly_name()} for port in model.inputs]
    given = placed(ports, inputs)
    return lambda: model(given), lambda: [np.array(model(given)[i]) for i in range(len(model.outputs))]


def onnxruntime(path: Path, inputs: Mapping[str, Array], threads: int) -> tuple[Run, Callable[[], list[Array]]]:
    """ONNX Runtime's CPU provider with all graph optimisations."""
    import onnxruntime as ort  # noqa: PLC0415

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_inputs()]
    given = {names[i]: array for i, array in placed([{name} for name in names], inputs).items()}
    return lambda: session.run(None, given), lambda: session.run(None, given)


def inductor(path: Path, inputs: Mapping[str, Array], threads: int) -> tuple[Run, Callable[[], list[Array]]]:
    """An exported program by torch.compile, its weights as constants."""
    import torch  # noqa: PLC0415  (only the process that times PyTorch has it)

    torch.set_num_threads(threads)
    torch._inductor.config.freezing = True
    program = torch.export.load(path)
    args, kwargs = program.example_inputs
    named = [name for name, value in kwargs.items() if value is not None]
    given = [torch.from_numpy(array) for array in inputs.values()]
    compiled = torch.compile(program.module())

    def run() -> object:
        with torch.no_grad():
            return compiled(*given[: len(args)], **dict(zip(named, given[len(args) :], strict=True)))

    return run, lambda: [t.numpy() for t in torch.utils._pytree.tree_leaves(run())]


def peak(path: Path, inputs: Mapping[str, Array], threads: int) -> tuple[Run, Callable[[], list[Array]]]:
    """Not an engine: multiply-adds at the machine's limit, a fixed number of them."""
    from aot.codegen.llvm.host import parse_target  # noqa: PLC0415
    from aot.codegen.llvm.peak import PeakLoops  # noqa: PLC0415

    loops = PeakLoops(parse_target("native"))
    turns = loops.turns(threads)
    flops = loops.multiply(turns, threads)
    return lambda: loops.multiply(turns, threads), lambda: [np.array([flops])]


ENGINES = {"ours": ours, "openvino": openvino, "onnxruntime": onnxruntime, "inductor": inductor, "peak": peak}
AS_INSTALLED = ENGINES | {"openvino": openvino_as_installed}
