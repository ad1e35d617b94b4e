"""Cases of every operation as WebAssembly, in one process of Node.js: the result is that of the reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from aot.compilation.driver import stages
from aot.options import CompileOptions
from aot.runtime.loading.library import read_manifest
from tests.cases import Case
from tests.codegen.web import Call, run_in_node
from tests.opset.test_compiled import MODULES, cases_of, failures, network

FAST = CompileOptions(level=None, target="wasm")


def chosen(module: str, dynamic: bool) -> list[Case]:
    """Return all cases of families that have the instructions; of others the largest of each operation and types.

    What attributes and sizes do to loops `test_compiled` tests. Of open sizes it is the largest of each family: fixed
    ones have the instructions, and networks of `codegen/llvm/test_wasm.py` what calls them with other sizes.
    """
    cases = cases_of(module, dynamic)
    if module.startswith(("elementwise.", "reduction.reduction")) and not dynamic:
        return cases
    found: dict[object, Case] = {}
    for case in sorted(cases, key=lambda c: -sum(a.size for a in c.arrays if a is not None)):
        types = tuple(o and o.dtype for o in case.operands())
        found.setdefault(None if dynamic else (type(case.op), *types), case)
    return list(found.values())


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_modules_agree_with_references(dynamic: bool, tmp_path: Path) -> None:
    kept: dict[str, list[Case]] = {}
    for module in MODULES:
        kept.setdefault(module.partition(".")[0], []).extend(chosen(module, dynamic))
    kept = {name: cases for name, cases in kept.items() if cases}
    jobs: list[tuple[str, list[Call]]] = []
    for name, cases in kept.items():
        graph, fed = network(cases)
        stages(graph, FAST).built.write_shared(tmp_path / f"{name}.wasm")
        infos = read_manifest(tmp_path / f"{name}.wasm").inputs
        jobs.append((f"{name}.wasm", [{info.name: x for info, x in zip(infos, fed, strict=True)}]))
    failed: list[str] = []
    for (file, _), (answer,), cases in zip(jobs, run_in_node(tmp_path, jobs), kept.values(), strict=True):
        if not isinstance(answer, dict):
            failed.append(f"{file}: {answer}")
            continue
        names = [info.name for info in read_manifest(tmp_path / file).outputs]
        failed += failures(cases, [answer[name] for name in names])
    assert not failed, "\n".join(failed)
