"""The command `aot serve`: its options as settings, and a server that runs until a signal comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

from aot.options.texts import bytes_of
from aot.runtime.errors import MissingError, UsageError
from aot.runtime.regular import read_file
from aot.serve.settings import BY_MODEL, Settings
from aot.serve.workers import OnReady, run_workers, shared_metrics

_MAX_TOKEN = 4096
_READ = {
    *BY_MODEL,
    "max_body",
    "max_answer",
    "prefix_cache",
    "lora",
    "by_model",
}  # written in other units than the settings


def run(options: Mapping[str, Any], say: Callable[[str], object]) -> None:
    """Serve as the parameters of the command say; `say` gets the addresses. MissingError without the packages."""
    settings = settings_of(options)
    with shared_metrics(settings.workers):
        _serve(options, settings, say)


def _serve(options: Mapping[str, Any], settings: Settings, say: Callable[[str], object]) -> None:
    try:
        module = import_module("aot.serve.server")
    except ModuleNotFoundError as error:
        raise MissingError(f"serve: needs the package {error.name}: pip install 'aot[serve]'") from None
    import_module("aot.serve.logs").configure(options["log_json"], options["log_requests"])
    listener = module.listener_of(settings)

    def serve(on_ready: OnReady | None) -> None:
        server = module.Server(options["models"], settings, listener)

        def tell() -> None:
            if on_ready is not None:
                _tell(server, settings, say)
                on_ready()

        server.run(tell)

    if settings.workers > 1:
        run_workers(settings.workers, serve)
    else:
        serve(lambda: None)


def _tell(server: Any, settings: Settings, say: Callable[[str], object]) -> None:
    """Say the addresses and the models of a server that answers requests."""
    kind = "http" if settings.tls_key is None else "https"
    say(f"{kind}://{settings.host}:{server.port}/v2")
    if server.grpc_port is not None:
        say(f"grpc://{settings.host}:{server.grpc_port}")
    for entry in server.repository.index():
        say(f"  {entry['name']} version {entry['version']}: {entry['reason'] or entry['state'].lower()}")


def settings_of(options: Mapping[str, Any]) -> Settings:
    """Return the settings for the parameters of the command; UsageError for a text that cannot be read."""
    plain: dict[str, Any] = {f.name: options[f.name] for f in fields(Settings) if options.keys() & {f.name} - _READ}
    token = None if options["token_file"] is None else _token(options["token_file"])
    more: dict[str, Any] = {"by_model": {}}
    for option, kind, unit in (("max_batch", int, 1), ("queue", int, 1), ("batch_wait", float, 1e-3)):
        for text in options[option] or ():
            model, _, value = text.rpartition("=")
            own = more["by_model"].setdefault(model, {}) if model else more
            own[option] = _number(option, value, kind) * unit
    more |= {name: bytes_of(options[name], name.replace("_", "-")) for name in ("max_body", "max_answer")}
    kept = options["prefix_cache"]
    more["prefix_cache"] = 0 if kept == "0" else bytes_of(kept, "prefix-cache")
    more["lora"] = dict(map(_adapter, options["lora"] or ()))
    return Settings(token=token, **plain, **more)


def _adapter(text: str) -> tuple[str, Path]:
    name, _, path = text.partition("=")
    if not name or not Path(path).exists() or not path:
        raise UsageError(f"serve: --lora must be NAME=PATH of a folder or a file, got {text[:80]!r}")
    return name, Path(path)


def _number(option: str, text: str, kind: type[int | float]) -> float:
    try:
        return kind(text)
    except ValueError:
        raise UsageError(f"serve: --{option.replace('_', '-')} must be N or MODEL=N, got {text[:40]!r}") from None


def _token(path: Path) -> str:
    text = read_file(path, "serve").decode("ascii", "replace").strip()
    if not text or len(text) > _MAX_TOKEN or not text.isprintable():
        raise UsageError(f"serve: {path}: must hold a token of printable characters, got another")
    return text
