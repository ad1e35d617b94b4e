"""Kernel -> object code, in a module of its own, in this process or in another one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any, cast

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Kernel, Var
from aot.codegen.llvm.emit.function_text import Function
from aot.codegen.llvm.emit.kernel import emit
from aot.codegen.llvm.object.features import features_used
from aot.codegen.llvm.object.optimize import compile_module
from aot.codegen.llvm.object.size_json import size_from, size_json
from aot.codegen.nest.scheduled_kernel import KernelFacts, facts_of
from aot.codegen.target import Target

Head = dict[str, object]
ENTRY = "kernel"  # name of the function in a module
RESULTS = 2  # of a kernel
_VECTOR = re.compile(r"<\d+ x ")


@dataclass(frozen=True, slots=True)
class KernelModule:
    """The module of a kernel. `level`: of LLVM's passes for functions without vectors; `flushes`: as for `emit`."""

    kernel: Kernel
    target: Target
    level: int | None
    flushes: bool

    def results(self) -> Iterator[Head | bytes]:
        """Yield facts about the function once its text is written, then the object code."""
        kernel = self.kernel.named(ENTRY)
        function = emit(kernel, target=self.target, flushes=self.flushes)
        text = functions_text([function], "hidden ")
        features = sorted(features_used(text, self.target.machine))
        yield {
            "features": features,
            "scratch": size_json(function.scratch_bytes, kernel.sizes),
            "facts": facts_json(facts_of(kernel), kernel.sizes),
        }
        yield compile_module(text, self.target, None if has_vectors(text) else self.level)


def facts_json(facts: KernelFacts, sizes: Sequence[Var]) -> Head:
    """Return facts about a kernel's loops as a value of JSON."""
    return {**asdict(facts), "units": size_json(facts.units, sizes)}


def facts_from(head: Head, sizes: Sequence[Var]) -> KernelFacts:
    """Return the facts about a kernel's loops that `facts_json` has made a value of."""
    facts = KernelFacts(**cast("dict[str, Any]", head["facts"]))
    return replace(facts, units=size_from(facts.units, sizes))


def has_vectors(text: str) -> bool:
    return _VECTOR.search(text) is not None


def functions_text(functions: Sequence[Function], linkage: str = "") -> str:
    """Return a module of functions that other modules may call."""
    declarations = sorted({d for f in functions for d in f.declarations})
    tables = [line for f in functions for line in f.globals]
    texts = [f.text().replace("define internal ", f"define {linkage}", 1) for f in functions]
    return "\n".join([*tables, *texts, *declarations]) + "\n"
