"""The Open Inference Protocol over gRPC; the package tritonclient has its messages."""

from __future__ import annotations

import hmac
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from aot.runtime.abi import DType
from aot.runtime.arrays.tensors import Array
from aot.runtime.errors import AotError, MissingError, ModelError, UsageError
from aot.serve import protocol
from aot.serve.datatypes import check_datatype, checked_shape, datatype_of, from_json, from_raw, to_raw
from aot.serve.faults import TokenError, UnknownModelError, grpc_code
from aot.serve.protocol import Call, check_parameters, checked_id, input_of, outputs_of, timeout_of
from aot.serve.repository import Repository
from aot.serve.served_model import ServedModel

_LOG = logging.getLogger(__name__)
_SERVICE = "inference.GRPCInferenceService"
_OPEN = ("ServerLive", "ServerReady")  # probes of an orchestrator carry no token

# The packages are optional and have no types.
Message = Any
Context = Any
Method = Callable[[Message], Awaitable[Message | Mapping[str, object]]]


async def start(repository: Repository) -> tuple[Any, int]:
    """Start a gRPC server in the running event loop; return it and its port. UsageError if the port is in use."""
    try:
        grpc, service = import_module("grpc"), Service(repository)
    except ModuleNotFoundError as error:
        raise MissingError(f"serve: gRPC needs the package {error.name}: pip install 'aot[serve]'") from None
    settings = repository.settings
    sizes = [("grpc.max_receive_message_length", settings.max_body), ("grpc.max_send_message_length", -1)]
    options = [*sizes, ("grpc.so_reuseport", int(settings.workers > 1))]
    server = grpc.aio.server(options=options, maximum_concurrent_rpcs=settings.max_connections)
    server.add_generic_rpc_handlers((service.handler(),))
    address = f"{settings.host}:{settings.grpc_port}"
    try:
        if settings.tls_key is None or settings.tls_certificate is None:
            port = server.add_insecure_port(address)
        else:
            pair = [(_read(settings.tls_key), _read(settings.tls_certificate))]
            port = server.add_secure_port(address, grpc.ssl_server_credentials(pair))
    except RuntimeError:
        raise UsageError(f"serve: the address for gRPC must be free, got {address}") from None
    await server.start()
    return server, port


def _read(path: Path) -> bytes:
    return path.read_bytes()


class Service:
    """The methods of the service, by the protocol's names."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        token = repository.settings.token
        self._token = None if token is None else f"Bearer {token}".encode()
        self._pb: Any = import_module("tritonclient.grpc.service_pb2")
        self._filled: Callable[..., Message] = import_module("google.protobuf.json_format").ParseDict
        self._damaged: Any = import_module("google.protobuf.message").DecodeError
        self._grpc: Any = import_module("grpc")

    def handler(self) -> Any:
        """Return the methods as grpc takes them; methods of other extensions are not implemented."""
        methods: dict[str, Method] = {
            "ServerLive": self._live,
            "ServerReady": self._live,
            "ServerMetadata": self._server,
            "ModelReady": self._model_ready,
            "ModelMetadata": self._metadata,
            "ModelConfig": self._config,
            "ModelStatistics": self._statistics,
            "ModelInfer": self._infer,
            "RepositoryIndex": self._index,
            "RepositoryModelLoad": self._load,
            "RepositoryModelUnload": self._unload,
        }
        handlers = {name: self._unary(name, method) for name, method in methods.items()}
        handlers["ModelStreamInfer"] = self._grpc.stream_stream_rpc_method_handler(
            self._stream,
            response_serializer=self._pb.ModelStreamInferResponse.SerializeToString,
        )
        return self._grpc.method_handlers_generic_handler(_SERVICE, handlers)

    def _unary(self, name: str, method: Method) -> Any:
        answer_type = getattr(self._pb, f"{name}Response")

        async def called(data: bytes, context: Context) -> Message:
            try:
                if name not in _OPEN:
                    self._check(context)
                reply = await method(self._read(f"{name}Request", data))
                return self._filled(reply, answer_type()) if isinstance(reply, dict) else reply
            except (AotError, OSError) as error:
                _LOG.info("refused", extra={"facts": {"method": name, "error": str(error)[:500]}})
                await context.abort(getattr(self._grpc.StatusCode, _code(error)), str(error))

        return self._grpc.unary_unary_rpc_method_handler(
            called,
            response_serializer=answer_type.SerializeToString,
        )

    def _read(self, kind: str, data: bytes) -> Message:
        """Return a message; UsageError for other bytes, which grpc itself would log as a fault of the server."""
        try:
            return getattr(self._pb, kind).FromString(data)
        except self._damaged:
            raise UsageError(f"request: must be a message {kind}, got {len(data)} other bytes") from None

    def _check(self, context: Context) -> None:
        if self._token is None:
            return
        header = dict(cast(list[tuple[str, object]], context.invocation_metadata() or ())).get("authorization", "")
        if not hmac.compare_digest(str(header).encode(), self._token):
            raise TokenError("request: must have the server's token, got none or another")

    async def _live(self, request: Message) -> Mapping[str, object]:
        name = type(request).__name__
        if name == "ServerReadyRequest":
            self._repository.check_ready()
        return {name.removeprefix("Server").removesuffix("Request").lower(): True}

    async def _server(self, request: Message) -> Mapping[str, object]:
        del request
        return protocol.server_metadata()

    async def _model_ready(self, request: Message) -> Mapping[str, object]:
        try:
            self._repository.find(request.name, request.version)
        except UnknownModelError:
            return {"ready": False}
        return {"ready": True}

    async def _metadata(self, request: Message) -> Mapping[str, object]:
        return protocol.model_metadata(self._repository, self._repository.find(request.name, request.version))

    async def _config(self, request: Message) -> Mapping[str, object]:
        return {"config": protocol.model_config(self._repository.find(request.name, request.version))}

    async def _statistics(self, request: Message) -> Mapping[str, object]:
        one = [self._repository.find(request.name, request.version)] if request.name else self._repository.loaded()
        return {"model_stats": [served.metrics.statistics() for served in one]}

    async def _index(self, request: Message) -> Mapping[str, object]:
        models = self._repository.index()
        return {"models": [entry for entry in models if not request.ready or entry["state"] == "READY"]}

    async def _load(self, request: Message) -> Mapping[str, object]:
        if request.parameters:
            raise UsageError("load: must have no parameters, as models are what their files are, got some")
        problems = await self._repository.change(request.model_name)
        if problems:
            raise ModelError("; ".join(problems))
        return {}

    async def _unload(self, request: Message) -> Mapping[str, object]:
        await self._repository.unload(request.model_name)
        return {}

    async def _infer(self, request: Message) -> Message:
        served = self._repository.find(request.model_name, request.model_version)

        async def read() -> Call:
            return _parsed(served, request)

        call, answer = await protocol.answer(served, read, self._repository.settings.max_answer)
        if _LOG.isEnabledFor(logging.INFO):
            _LOG.info("inferred", extra={"facts": protocol.facts(call, answer, "grpc")})
        response = self._pb.ModelInferResponse(model_name=served.name, model_version=served.version, id=call.id)
        for info in call.outputs:
            array = answer.results[info.name]
            response.outputs.add(name=info.name, datatype=datatype_of(info), shape=array.shape)
            response.raw_output_contents.append(to_raw(info, array))
        return response

    async def _stream(self, requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[Message]:
        """Answer the requests of a stream in their order; an error is an answer, and the stream goes on."""
        try:
            self._check(context)
        except TokenError as error:
            await context.abort(getattr(self._grpc.StatusCode, _code(error)), str(error))
        async for data in requests:
            response, request = self._pb.ModelStreamInferResponse(), self._pb.ModelInferRequest()
            try:
                request = self._read("ModelInferRequest", data)
                response.infer_response.CopyFrom(await self._infer(request))
            except AotError as error:
                response.error_message = str(error)
                response.infer_response.id = request.id
            yield response


def _code(error: Exception) -> str:
    return "INVALID_ARGUMENT" if isinstance(error, ModelError | OSError) else grpc_code(error)


def _parsed(served: ServedModel, request: Message) -> Call:
    """Return the request of a message; UsageError."""
    parameters = _parameters("request", request)
    raw = list(request.raw_input_contents)
    if raw and len(raw) != len(request.inputs):
        raise UsageError(f"request: raw_input_contents must be {len(request.inputs)}, one an input, got {len(raw)}")
    inputs = dict[str, Array]()
    for index, tensor in enumerate(request.inputs):
        info = input_of(served, tensor.name)
        if info.name in inputs:
            raise UsageError(f"input '{info.name}': must be given once, got another")
        _parameters(f"input '{info.name}'", tensor)
        check_datatype(info, tensor.datatype)
        shape = checked_shape(info.name, list(tensor.shape))
        if raw:
            inputs[info.name] = from_raw(info, shape, raw[index])
            continue
        fields = tensor.contents.ListFields()
        if len(fields) > 1:
            raise UsageError(f"input '{info.name}': must have one field of contents, got {len(fields)}")
        data: list[Any] = list(fields[0][1]) if fields else []
        if info.dtype is DType.STRING:
            data = [text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text for text in data]
        inputs[info.name] = from_json(info, shape, data)
    outputs = outputs_of(served, [output.name for output in request.outputs])
    for output in request.outputs:
        _parameters("output", output)
    names = {info.name for info in outputs}
    return Call(inputs, outputs, checked_id(request.id), timeout_of(parameters), names)


def _parameters(what: str, message: Message) -> Mapping[str, object]:
    """Return the parameters of a request, an input or an output; UsageError for those that are not supported."""
    parameters = {name: _parameter(value) for name, value in message.parameters.items()}
    check_parameters(what, parameters)
    return parameters


def _parameter(value: Message) -> object:
    kind = value.WhichOneof("parameter_choice")
    return None if kind is None else getattr(value, kind)
