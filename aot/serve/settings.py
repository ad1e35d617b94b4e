"""Limits and addresses of a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

from aot.codegen.dataclass import dataclass
from aot.runtime.errors import UsageError

BY_MODEL = ("max_batch", "batch_wait", "queue")  # settings that a model may have of its own
_LEAST = {
    **dict.fromkeys(("workers", "max_batch", "queue", "max_body", "max_answer", "max_connections", "sequences"), 1),
    "max_context": 1,
    "look_up": 0,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a server; times are in seconds, sizes in bytes."""

    host: str = "127.0.0.1"
    port: int = 8000  # 0: any free one
    grpc_port: int | None = None  # 0: any free one; None: no gRPC
    workers: int = 1  # processes that answer at the port
    threads: int | None = None  # of one inference; None: this process's share of the processors
    jobs: int | None = None  # inferences at once, of all models together; None: as many as threads
    max_batch: int = 1  # rows of requests that may be inferred as one batch
    batch_wait: float = 0.0  # for which the first request of a batch waits for others
    queue: int = 256  # requests of a model that may wait
    timeout: float = 30.0  # of a request, from its last byte to its answer
    max_body: int = 64 << 20  # of a request, also after decompression
    max_answer: int = 256 << 20  # of an answer; numbers in JSON count as the longest ones
    receive_timeout: float = 30.0  # in which a request must arrive
    max_connections: int = 1024
    drain: float = 0.0  # before it stops, in which the server is not ready but answers
    stop_timeout: float = 30.0  # in which accepted requests must be answered when the server stops
    sequences: int = 4  # answers of a language model that are made at once
    max_context: int = 4096  # tokens of a prompt and its answer, at most
    prefix_cache: int = 512 << 20  # of keys and values of prompts and answers that a language model keeps; 0: none
    look_up: int = 0  # tokens that a step of a language model computes at once where they followed the last ones before
    cache: Path | None = None  # folder that keeps these, too
    lora: Mapping[str, Path] = field(default_factory=dict[str, Path])  # adapters of language models, by name
    answer_timeout: float = 600.0  # of an answer of a language model, from the request's last byte to its last token
    poll: float | None = None  # seconds between checks of the files; None: only on request
    token: str | None = None  # that clients must send as `Authorization: Bearer TOKEN`; health needs none
    tls_certificate: Path | None = None  # PEM, with the chain
    tls_key: Path | None = None
    verify_key: Path | None = None  # public key with which all libraries must be signed
    strict: bool = False  # also check the weights inside of libraries, which reads all of them
    strict_readiness: bool = True  # not ready while a file of the repository has no loaded model
    by_model: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])

    def of(self, model: str) -> Settings:
        """Return the settings of a model: its own ones of `by_model`, and the others."""
        own = self.by_model.get(model, {})
        return replace(self, by_model={}, **own) if own else self

    def _check_models(self) -> None:
        for name, own in self.by_model.items():
            if wrong := own.keys() - {*BY_MODEL}:
                raise UsageError(
                    f"serve: settings of model {name} must be some of {', '.join(BY_MODEL)}, got {min(wrong)}"
                )
            self.of(name)

    def __post_init__(self) -> None:
        self._check_models()
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise UsageError(f"serve: {name} must be {least} or more, got {getattr(self, name)}")
        if self.workers > 1 and self.grpc_port == 0:
            raise UsageError("serve: with workers, grpc_port must be a port that all of them listen at, got 0")
        for name in ("timeout", "receive_timeout", "stop_timeout", "answer_timeout"):
            if getattr(self, name) <= 0:
                raise UsageError(f"serve: {name} must be above 0 seconds, got {getattr(self, name)}")
        if self.jobs is not None and self.jobs < 1:
            raise UsageError(f"serve: jobs must be 1 or more, got {self.jobs}")
        for name in ("drain", "batch_wait"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise UsageError(f"serve: {name} must be 0 seconds or more, got {getattr(self, name)}")
        if self.poll is not None and self.poll <= 0:
            raise UsageError(f"serve: poll must be above 0 seconds, got {self.poll}")
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise UsageError("serve: a TLS certificate and its key must be given together, got one of them")
        if self.token is not None and not self.token.isascii():
            raise UsageError("serve: a token must be ASCII, got other characters")
