"""`aot.runtime`: the public names of the package `runtime`, which runs compiled models without the compiler."""

from runtime import (
    AotError,
    AsyncInferQueue,
    BusyError,
    CancelledError,
    CompiledModel,
    Dim,
    Executor,
    InferRequest,
    Outputs,
    Pipeline,
    TensorInfo,
    VariableState,
    import_model,
    load,
    update_weights,
)

__all__ = [
    "AotError",
    "AsyncInferQueue",
    "BusyError",
    "CancelledError",
    "CompiledModel",
    "Dim",
    "Executor",
    "InferRequest",
    "Outputs",
    "Pipeline",
    "TensorInfo",
    "VariableState",
    "import_model",
    "load",
    "update_weights",
]
