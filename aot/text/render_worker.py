"""Renders chat templates in a process with limited memory and time: a template is a program.

The first line of the input is the template as JSON, each other line an object of variables; each line of the output is
`{"text": …}` or `{"error": …}`. Run by path: it needs the standard library and jinja2 only. Arguments: folders
of packages, for those that lie in no other place.
"""

import ctypes
import json
import signal
import struct
import sys
from datetime import datetime
from typing import Any

sys.path += sys.argv[1:]

if sys.platform != "win32":
    import resource

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

MEMORY = 512 << 20  # bytes of address space
SECONDS = 2  # CPU seconds for one text
MAX_TEXT = 16 << 20  # characters of one text


class _RefusedError(TemplateError):
    """The template itself refuses the messages."""


class _Generation(Extension):
    """`{% generation %} … {% endgeneration %}` marks what the model says, for training; its content is written."""

    tags: set[str] = {"generation"}  # noqa: RUF012 (jinja2 declares it so)

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


def _refuse(message: object) -> None:
    raise _RefusedError(str(message))


def _as_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Return a value as JSON, by the options that transformers gives templates."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _now(form: str) -> str:
    return datetime.now().strftime(form)


def _limit_time() -> None:
    if sys.platform != "win32":  # where the other side ends this process
        used = resource.getrusage(resource.RUSAGE_SELF)
        soft = int(used.ru_utime + used.ru_stime) + 1 + SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _limit_memory() -> None:
    if sys.platform == "win32":
        _limit_job()
    else:
        try:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        except ValueError:
            if sys.platform != "darwin":  # which has no limit of memory
                raise


def _limit_job() -> None:
    """Put this process in a job of Windows that limits its processes to `MEMORY` bytes."""
    if sys.platform == "win32":
        kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel32.CreateJobObjectW.restype = kernel32.GetCurrentProcess.restype = ctypes.c_void_p
        job = ctypes.c_void_p(kernel32.CreateJobObjectW(None, None))
        # JOBOBJECT_EXTENDED_LIMIT_INFORMATION: 144 bytes, with LimitFlags at 16 and ProcessMemoryLimit at 112
        limits = bytearray(144)
        struct.pack_into("<I", limits, 16, 0x100)  # JOB_OBJECT_LIMIT_PROCESS_MEMORY
        struct.pack_into("<Q", limits, 112, MEMORY)
        data = (ctypes.c_char * len(limits)).from_buffer(limits)
        this = ctypes.c_void_p(kernel32.GetCurrentProcess())
        if not kernel32.SetInformationJobObject(job, 9, data, len(limits)) or not kernel32.AssignProcessToJobObject(
            job, this
        ):
            raise ctypes.WinError(ctypes.get_last_error())


def _rendered(template: Any, variables: dict[str, Any]) -> str:
    parts: list[str] = []
    size = 0
    for part in template.generate(variables):
        size += len(part)
        if size > MAX_TEXT:
            raise _RefusedError(f"a text can have at most {MAX_TEXT} characters, got more")
        parts.append(part)
    return "".join(parts)


def main() -> None:
    """Answer lines until the input ends; Ctrl-C is for the process on the other side."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _limit_memory()
    extensions: list[Any] = [loopcontrols, _Generation]
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=extensions)
    environment.filters["tojson"] = _as_json
    own: dict[str, Any] = {"raise_exception": _refuse, "strftime_now": _now}
    environment.globals.update(own)
    _limit_time()
    template: Any = None
    for line in sys.stdin:
        _limit_time()
        try:
            if template is None:
                template = environment.from_string(json.loads(line))
                answer = {"text": ""}
            else:
                answer = {"text": _rendered(template, json.loads(line))}
        except MemoryError:
            answer = {"error": f"a template takes at most {MEMORY >> 20} MB, got more"}
        except Exception as error:  # a template may raise anything; the answer names it
            answer = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
