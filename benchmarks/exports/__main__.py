"""Compiles networks as people export them, and compares them with eager PyTorch.

    python -m benchmarks.exports RESULTS transformers [NAME ..]     needs torch, transformers and aot in one environment
    python -m benchmarks.exports RESULTS timm [NAME ..]             the same with timm
    python -m benchmarks.exports RESULTS torchvision [NAME ..]      the same with torchvision: detectors as ONNX
    python -m benchmarks.exports RESULTS diffusers [NAME ..]        the same with diffusers
    python -m benchmarks.exports RESULTS torchaudio [NAME ..]       the same with torchaudio
    python -m benchmarks.exports RESULTS quantised [NAME ..]        the same with torchao
    python -m benchmarks.exports RESULTS keras [NAME ..]            needs tensorflow instead
    python -m benchmarks.exports RESULTS kerashub [NAME ..]         the same with keras-hub
    python -m benchmarks.exports RESULTS tflite [NAME ..]           the same with Keras, quantised as TensorFlow Lite
    python -m benchmarks.exports RESULTS paddle [NAME ..]           needs paddlepaddle instead
    python -m benchmarks.exports RESULTS --table                    the table of what is in RESULTS

Each network has small random weights and a process of its own: `torch.export.export(model, (), inputs)` and
`torch.export.save`, nothing around them. RESULTS is a file with a line of JSON for each network; a network that is in
it is not run again. A difference is relative to the largest number of an output. A network that stretches roundings is
right if its results are as near to those of PyTorch in f64 as PyTorch's own in f32. With --references the optimised
graph is computed by NumPy and no code is made: what is converted, not what is compiled, is compared.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import tempfile
import time
import warnings
from collections import Counter
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

SECONDS = 900  # of one network, unless --seconds says otherwise
# Families, and the largest difference of a right network: f32 sums in another order; where they are rounded to 8 bits,
# a number in the middle of two levels may become either one.
NEAR = dict.fromkeys(
    ("transformers", "timm", "torchvision", "diffusers", "torchaudio", "keras", "kerashub", "paddle", "tflite"), 1e-4
)
NEAR["quantised"] = 1e-2
LEVELS = 1e-3  # the share of numbers of a quantised network that may have the next level, each layer alone
SILENT = 1e-6  # of the largest number of all results: `difference` is relative to at least this
OUTCOMES = ("right", "differs", "refused", "fails", "not exported", "not built")
COUNTED = OUTCOMES[:4]  # the others say nothing of the compiler
Verdict = tuple[str, str]


def verdict(family: str, name: str, references: bool = False) -> Verdict:
    """Return the outcome for a network of PyTorch, one of `OUTCOMES`, and the largest difference or the error."""
    import torch  # noqa: PLC0415  (in the process of the network: a fork of one that has used torch would hang)

    from aot.runtime.errors import AotError  # noqa: PLC0415
    from benchmarks.pytorch.check import difference, plain  # noqa: PLC0415

    warnings.simplefilter("ignore")
    torch.manual_seed(7)
    torch.set_num_threads(1)
    networks = import_module(f"benchmarks.exports.{family}_networks")
    try:
        module, inputs = networks.network(name)
        wanted = results(module, inputs)
    except Exception as error:  # of many kinds: what is small may not fit a network
        return "not built", said(error)
    largest = max((float(abs(a).max(initial=0)) for a in wanted), default=0.0)
    if largest < SILENT and any(a.size for a in wanted):  # not: a detector that finds nothing
        return "not built", f"the largest number of all results is at least {SILENT}, got {largest:.1e}"
    with tempfile.TemporaryDirectory() as folder:
        try:
            path, program = written(networks, module, inputs, Path(folder))
        except Exception as error:  # PyTorch's, of many kinds
            return "not exported", said(error)
        try:
            found = computed(path, [plain(a) for a in tensors(inputs)], references)
        except AotError as error:
            return "refused", " | ".join(str(error).splitlines()[:4])[:600]
    outputs = found[: len(wanted)]
    if hasattr(networks, "aligned"):
        outputs = networks.aligned(outputs, wanted)
    gap = difference(outputs, [plain(a) for a in wanted])
    if gap > NEAR[family] and program is not None:
        traced = [plain(a) for a in tensors(program.module()(**inputs))[: len(outputs)]]
        if difference(outputs, traced) <= NEAR[family]:
            return "not exported", f"the exported program itself differs from eager PyTorch: {gap:.1e}"
    if gap <= NEAR[family]:
        return "right", f"{gap:.1e}"
    if family == "quantised":
        return by_layers(networks.layers(module, inputs), references, f"{gap:.1e}")
    exact = in_doubles(module, inputs)
    own, ours = difference([plain(a) for a in wanted], exact), difference(outputs, exact)
    text = f"{gap:.1e}; from PyTorch in f64 {ours:.1e}, its own f32 results {own:.1e}"
    return ("right" if ours <= own else "differs"), text


def by_layers(found: tuple[Any, dict[str, Any]] | None, references: bool, text: str) -> Verdict:
    """Return the outcome for a network whose layers get PyTorch's numbers, and how many of theirs have other levels."""
    import torch  # noqa: PLC0415

    if found is None:
        return "differs", text
    module, inputs = found
    wanted = results(module, inputs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt2"
        torch.export.save(torch.export.export(module, (), inputs), path)
        outputs = computed(path, tensors(inputs), references)
    gaps = [abs(a.astype(int) - b.astype(int)) for a, b in zip(outputs, wanted, strict=True)]
    most, share = max(int(g.max()) for g in gaps), sum((g > 0).sum() for g in gaps) / sum(g.size for g in gaps)
    text += f"; layers alone: at most {most} levels, {share:.1e} of the numbers"
    return ("right" if most <= 1 and share <= LEVELS else "differs"), text


def results(module: Any, inputs: dict[str, Any]) -> list[Any]:
    """Return the results of an inference in eager mode, in order, as arrays; none of caches."""
    import torch  # noqa: PLC0415

    with torch.no_grad():
        found = module(**inputs)
    return tensors([v for v in found.values() if "Cache" not in type(v).__name__] if isinstance(found, dict) else found)


def in_doubles(module: Any, inputs: dict[str, Any]) -> list[Any]:
    """Return the results of a module in f64."""
    import torch  # noqa: PLC0415

    from benchmarks.pytorch.check import plain  # noqa: PLC0415

    given = {k: v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for k, v in inputs.items()}
    return [plain(a) for a in results(copy.deepcopy(module).double(), given)]


def computed(path: Path, inputs: list[Any], references: bool) -> list[Any]:
    """Return the outputs of a model, by its code or by the references of its operations."""
    import aot  # noqa: PLC0415
    from aot.ir.interpret import interpret  # noqa: PLC0415
    from aot.options import CompileOptions  # noqa: PLC0415
    from aot.tools.comparing.alone import alone  # noqa: PLC0415

    if references:
        return interpret(alone(path, CompileOptions()).optimized, inputs)
    model = aot.compile_model(path, threads=1, max_seconds=SECONDS)
    found = model(*inputs)
    return [found[i] for i in range(len(model.outputs))]


def written(networks: Any, module: Any, inputs: dict[str, Any], folder: Path) -> tuple[Path, Any]:
    """Write a module as its family says, else as a program; return the file, and the program if there is one."""
    import torch  # noqa: PLC0415

    if hasattr(networks, "write") and (path := networks.write(module, inputs, folder)):
        return path, None
    program, path = exported(module, inputs), folder / "model.pt2"
    torch.export.save(program, path)
    return path, program


def exported(module: Any, inputs: dict[str, Any]) -> Any:
    """Return the program of a module; without caches where PyTorch says that it cannot return them."""
    import torch  # noqa: PLC0415

    try:
        return torch.export.export(module, (), inputs)
    except RuntimeError as error:
        if "Cache'> in output" not in str(error):
            raise
        return torch.export.export(module, (), {**inputs, "use_cache": False})


def tensors(values: Any) -> list[Any]:
    """Return the tensors in arguments or results, in order, as arrays."""
    import torch  # noqa: PLC0415
    from torch.utils import _pytree as pytree  # noqa: PLC0415

    return [t.detach().numpy() for t in pytree.tree_leaves(values) if isinstance(t, torch.Tensor)]


def said(error: Exception) -> str:
    """Return the last lines of an error: a listing of the whole program comes first."""
    text = str(error).strip().rpartition("\n\n\n")[2].replace("\n", " ")
    return f"{type(error).__name__}: {text[:300]}"


def worker(family: str, name: str, references: bool, pipe: Connection) -> None:
    try:
        own = getattr(import_module(f"benchmarks.exports.{family}_networks"), "verdict", None)
        found = own(name, references) if own else verdict(family, name, references)
    except BaseException as error:
        found = "fails", f"{type(error).__name__}: {error}"[:600]
    pipe.send(found)


def apart(family: str, name: str, references: bool, seconds: float) -> Verdict:
    """Return the verdict of a network, found in a process of its own."""
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=worker, args=(family, name, references, theirs))
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(seconds) else ("fails", "takes too long")
    except EOFError:
        return "fails", "ends the process"
    finally:
        process.kill()
        process.join()


def recorded(results: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []


def table(rows: list[dict[str, Any]]) -> str:
    """Return a table with a line for each family, and one with a line for each network that is not right."""
    lines = ["| networks | " + " | ".join(OUTCOMES) + " |", "|--" * (len(OUTCOMES) + 1) + "|"]
    for family in dict.fromkeys(r["family"] for r in rows):
        counts = Counter(r["outcome"] for r in rows if r["family"] == family)
        lines.append(f"| {family} | " + " | ".join(str(counts[o]) for o in OUTCOMES) + " |")
    lines += ["", "| network | outcome | what is said |", "|--|--|--|"]
    wrong = [r for r in rows if r["outcome"] in COUNTED[1:]]
    lines += [f"| {r['name']} | {r['outcome']} | {r['text'].replace('|', ';')} |" for r in wrong]
    return "\n".join(lines)


def main() -> int:
    """Return the exit code: 0, or 1 if a network is refused, differs or fails."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exports", description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("family", nargs="?", choices=NEAR)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--again", action="store_true", help="run the names again, or all that are not right")
    parser.add_argument("--references", action="store_true", help="compute the optimised graph by NumPy, no code")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of one network, then its process is ended")
    parser.add_argument("--table", action="store_true", help="print the table of RESULTS")
    args = parser.parse_intermixed_args()  # names may follow options
    rows = recorded(args.results)
    if args.family:
        networks = import_module(f"benchmarks.exports.{args.family}_networks")
        networks.load()
        names = args.names or networks.names()
        family = f"{args.family}, by references" if args.references else args.family
        done = {(r["family"], r["name"]): r for r in rows}
        for name in names:
            before = done.get((family, name))
            if before is not None and not (args.again and (args.names or before["outcome"] != "right")):
                continue
            begin = time.perf_counter()
            outcome, text = apart(args.family, name, args.references, args.seconds)
            row = {"family": family, "name": name, "outcome": outcome, "text": text}
            done[family, name] = row
            print(f"{name}: {outcome}: {text} ({time.perf_counter() - begin:.0f} s)", flush=True)
            args.results.write_text("".join(json.dumps(r) + "\n" for r in done.values()))
        rows = list(done.values())
    if args.table or not args.family:
        print(table(rows))
    return int(any(r["outcome"] in COUNTED[1:] for r in rows))


if __name__ == "__main__":
    sys.exit(main())
