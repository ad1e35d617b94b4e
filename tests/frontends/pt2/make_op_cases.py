"""Makes the cases of single operations in `op_cases`: exported programs, inputs, and what PyTorch gives for them.

    python -m tests.frontends.pt2.make_op_cases [FAMILY ..]      needs torch 2.13 or later; not run by the tests

Family `boxes` needs torchvision besides, `blocks` torchao, `experts` transformers.
A family is one zip: `cases.json`, for each case its program, that with sizes left open where it is another one, types
and places of inputs and outputs; `data.bin`, their elements. The tables of cases are the Python files in `op_cases`,
beside the zips that they become.
"""

from __future__ import annotations

import io
import json
import sys
import warnings
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.export import Dim, export, save

from tests.frontends.pt2.archives import MODEL, PLACES
from tests.frontends.pt2.case import Case, Dtype, Known, Short

HERE = Path(__file__).parent / "op_cases"
DATE = (2020, 1, 1, 0, 0, 0)
# Modules that register the operations of a family.
OPERATIONS = {
    "quantized": "torch.ao.quantization.fx._decomposed",
    "boxes": "torchvision",
    "blocks": "torchao.quantization",
    "experts": "transformers.integrations.moe",
}
DROPPED = ("requires_grad", "device", "is_hop_single_tensor_return", "hint")


def resolved(value: Any, feed: Any) -> Any:
    """An argument with tensors in place of arrays; `feed` makes one of an array."""
    if isinstance(value, list | tuple):
        return [resolved(v, feed) for v in value]
    if isinstance(value, Dtype):
        return getattr(torch, value.name)
    return feed(value) if isinstance(value, np.ndarray | Known | Short) else value


def tensor(value: Any) -> torch.Tensor:
    if isinstance(value, Short):
        return torch.from_numpy(value.value).to(getattr(torch, value.type))
    return torch.from_numpy(np.array(value.value if isinstance(value, Known) else value, order="C"))


def arrays(value: Any) -> list[Any]:
    """The arrays in arguments that are fed, in order."""
    if isinstance(value, list | tuple):
        return [a for v in value for a in arrays(v)]
    return [value] if isinstance(value, np.ndarray | Short) else []


def operator(name: str) -> Any:
    space, _, rest = name.rpartition("::")
    packet, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, space or "aten"), packet), overload or "default")


class Single(torch.nn.Module):
    """Runs one operation on what it is fed."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.case = case
        self.count = 0

    def _known(self, value: Known) -> torch.Tensor:
        name = f"known{self.count}"
        self.count += 1
        if not hasattr(self, name):
            self.register_buffer(name, tensor(value))
        return getattr(self, name)

    def forward(self, *inputs: torch.Tensor) -> Any:
        self.count, fed = 0, iter(inputs)

        def feed(value: Any) -> torch.Tensor:
            return self._known(value) if isinstance(value, Known) else next(fed)

        args = resolved(self.case.args, feed)
        kwargs = {k: resolved(v, feed) for k, v in self.case.kwargs.items()}
        found = operator(self.case.op)(*args, **kwargs)
        return found[0] if self.case.first else found


def plain(value: Any) -> Any:
    """JSON without what tells nothing of the numbers."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k not in DROPPED} | (
            {"metadata": {}} if "target" in value else {}
        )
    return [plain(v) for v in value] if isinstance(value, list) else value


class Store:
    """Elements of arrays, one after the other."""

    def __init__(self) -> None:
        self.data = bytearray()

    def entry(self, value: torch.Tensor) -> list[Any]:
        value = value.detach().contiguous()
        if value.is_complex():
            value = torch.view_as_real(value.resolve_conj())
        place, _ = self.bytes(value.reshape(-1).view(torch.uint8).numpy().tobytes() if value.numel() else b"")
        return [str(value.dtype).removeprefix("torch."), list(value.shape), place]

    def bytes(self, data: bytes) -> list[int]:
        """Place and count of bytes."""
        self.data += data
        return [len(self.data) - len(data), len(data)]


def parts(program: Any, store: Store) -> dict[str, Any]:
    """The parts of an archive, without samples and traces: what `archives.entries` takes."""
    whole = io.BytesIO()
    save(program, whole)
    found: dict[str, Any] = {"configs": {}, "data": {}}
    with zipfile.ZipFile(whole) as source:
        for path in source.namelist():
            name, data = path.partition("/")[2], source.read(path)
            if name == MODEL:
                found["program"] = plain(json.loads(data))
            elif name in PLACES.values():
                config = plain(json.loads(data))
                kind = next(k for k, v in PLACES.items() if v == name)
                found["configs"] |= {kind: config} if config["config"] else {}
            elif name.startswith(("data/weights/", "data/constants/")):
                found["data"][name.removeprefix("data/")] = store.bytes(data)
    return found


def programs(case: Case, store: Store) -> dict[str, Any]:
    """The program of a case, and the one with open sizes if it differs."""
    fed = tuple(tensor(a) for a in (*arrays(case.args), *arrays(tuple(case.kwargs.values()))))
    module = Single(case).eval()
    module(*(t.clone() for t in fed))
    found = {"fixed": parts(export(module, fed), store)}
    if not case.fixed and any(t.dim() for t in fed):
        sizes = [dict.fromkeys(range(t.dim()), Dim.AUTO) for t in fed]
        try:
            opened = parts(export(module, fed, dynamic_shapes={"inputs": tuple(sizes)}), store)
        except Exception as error:  # export raises errors of many kinds where sizes cannot be open
            sys.stdout.write(f"  fixed only: {case.op}: {str(error).partition(chr(10))[0][:100]}\n")
        else:
            if "as_expr" in json.dumps(opened):
                found["open"] = opened
    return found


def outputs(found: Any) -> list[torch.Tensor]:
    if isinstance(found, list | tuple):
        return [t for v in found for t in outputs(v)]
    return [] if found is None else [torch.as_tensor(found)]


def make(family: str) -> None:
    if family in OPERATIONS:
        import_module(OPERATIONS[family])
    store, cases = Store(), []
    counts: dict[str, int] = {}
    for case in import_module(f"tests.frontends.pt2.op_cases.{family}").CASES:
        counts[case.op] = counts.get(case.op, -1) + 1
        name = f"{case.op.replace('::', '__')}-{counts[case.op]}"
        fed = [tensor(a) for a in (*arrays(case.args), *arrays(tuple(case.kwargs.values())))]
        try:
            made = programs(case, store)
        except Exception as error:  # the message names the case, whatever PyTorch raised
            raise SystemExit(f"{name}: {error}") from error
        inputs = [store.entry(t) for t in fed]
        wanted = [store.entry(t) for t in outputs(Single(case)(*(t.clone() for t in fed)))]
        cases.append({"name": name, "inputs": inputs, "outputs": wanted, "tolerance": case.tolerance, **made})
    files = {"cases.json": json.dumps(cases, separators=(",", ":")).encode(), "data.bin": bytes(store.data)}
    with zipfile.ZipFile(HERE / f"{family}.zip", "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, DATE), data, zipfile.ZIP_DEFLATED, 9)
    sys.stdout.write(f"{family}: {len(cases)} cases, {(HERE / f'{family}.zip').stat().st_size} bytes\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for family in sys.argv[1:] or sorted(f.stem for f in HERE.glob("[a-z]*.py")):
        make(family)
