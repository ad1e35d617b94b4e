"""Templates of LLVM IR written by hand: the thread pool, the entry points, waiting, cancelling, generation of text.

They are LLVM IR, not C: a build of this project needs no C compiler. Fields of structures and bits of words have names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from string import Template

from aot.codegen.machines import Machine
from aot.codegen.platforms import Platform
from aot.runtime import abi

_ASKED = ("now", "sleep", "rouse", "here", "avoid")  # functions of a system that `waiting.ll` and `placement.ll` place
TAKEN, OPEN = 1 << 33, 1 << 32  # bits of a slot's state; below them, the number of workers inside
_FIELDS = {  # fields in the order of the templates' types; one without a name is padding, or unused
    "slot": ("state", "run", "argument", "threads", "sleepers"),
    "seat": ("thread", "pool", "index", "place"),
    "pool": ("generation", "", "sleepers", "", "threads", "started", "lock", "owner", "worker", "", "slots", "seats"),
    "job": (
        "request",
        "plan",
        "scratch",
        "counters",
        "threads",
        "pool",
        "first_call",
        "last_call",
        "turn",
        "scratch_bytes",
    ),
    "request": tuple(field[0] for field in abi.Request._fields_),  # pyrefly: ignore[protected-access]  of ctypes, public
    "generation": tuple(field[0] for field in abi.Generation._fields_),  # pyrefly: ignore[protected-access]  of ctypes, public
    "sequence": (
        "request",
        "tokens",
        "input_blocks",
        "output_blocks",
        "arena",
        "state",
        "choice",
        "symbols",
        "input_dims",
        "output_dims",
        "output_bytes",
        "inputs",
        "outputs",
    ),
}
_NAMES: dict[str, int] = {
    **{f"{kind}_{name}": at for kind, names in _FIELDS.items() for at, name in enumerate(names) if name},
    "taken": TAKEN,
    "open": OPEN,
    "taken_and_open": TAKEN + OPEN,
    "not_open": ~OPEN,
    "jobs": 16,  # slots of a pool: requests that its workers serve at once; one more works alone
    "from_front": (1 << 32) - 1,  # chunks of a call that were drawn from its front; the upper half counts the others
    "from_back": 1 << 32,
    "osxsave": 1 << 27,  # of CPUID's leaf 1, ecx
    "extended": -(1 << 31),  # bit that tells extended leaves of CPUID from the others
}


def template_text(name: str, **values: object) -> str:
    """Return the template `name` with names of fields, of bits and of `values` replaced; KeyError if one is missing."""
    return Template(_template(name)).substitute(_NAMES, **values)


@cache
def _template(name: str) -> str:
    return (files(__name__) / name).read_text(encoding="utf-8")


def system_texts(platform: Platform, machine: Machine, features: Iterable[str] = ()) -> dict[str, str]:
    """Return the functions of a platform that templates place, by name, and the rest of its files as `declarations`."""
    numbers = platform.numbers_of(machine)
    text = "".join(template_text(name, **numbers) for name in platform.pool_of(features))
    texts = {name: body for name, body in _functions(text) if name in _ASKED}
    for body in texts.values():
        text = text.replace(body, "")
    return {**texts, "declarations": text}


_FUNCTION = re.compile(r"^define [^@]*@(\w+)\(.*?^}$", re.MULTILINE | re.DOTALL)


def _functions(text: str) -> Iterator[tuple[str, str]]:
    return ((match[1], match[0]) for match in _FUNCTION.finditer(text))
