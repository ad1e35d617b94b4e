"""Exports PyTorch's own samples of its operations (OpInfo), with what it computes: `FOLDER/OP-N/`, as networks.

python -m benchmarks.pytorch.samples FOLDER [OP ..] [--types float32 int64] [--most 12]    needs torch, expecttest

`python -m benchmarks.pytorch.check FOLDER/*` compares them.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

from benchmarks.pytorch.export import arrays

RANDOM = (
    "bernoulli multinomial normal rand uniform exponential cauchy geometric dropout log_normal empty rrelu"
).split()


class Sample(torch.nn.Module):
    """An operation on the tensors of a sample; its other arguments are constants."""

    def __init__(self, op: Any, args: Any) -> None:
        super().__init__()
        self.op = op
        leaves, self.spec = pytree.tree_flatten(args)
        self.fixed = [None if isinstance(v, torch.Tensor) else v for v in leaves]
        self.given = tuple(v for v in leaves if isinstance(v, torch.Tensor))
        self.places = [i for i, v in enumerate(leaves) if isinstance(v, torch.Tensor)]

    def forward(self, *given: torch.Tensor) -> Any:
        values = list(self.fixed)
        for place, value in zip(self.places, given, strict=True):
            values[place] = value
        args, kwargs = pytree.tree_unflatten(values, self.spec)
        return self.op(*args, **kwargs)


def write(sample: Sample, folder: Path) -> None:
    """Write the folder of a sample."""
    copies = tuple(t.clone() for t in sample.given)
    wanted = sample(*(t.clone() for t in copies))
    program = torch.export.export(sample, copies)
    folder.mkdir(parents=True, exist_ok=True)
    torch.export.save(program, folder / "model.pt2")
    np.savez(folder / "inputs_0.npz", *arrays(sample.given))
    np.savez(folder / "outputs_0.npz", *arrays(wanted))


def main() -> int:
    """0; samples that PyTorch does not export are counted."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pytorch.samples", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--types", nargs="+", default=["float32", "int64", "bool", "complex64"])
    parser.add_argument("--most", type=int, default=12, help="samples of an operation and a type")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    counts = Counter[str]()
    for op in op_db:
        if (args.names and op.name not in args.names) or any(word in op.name for word in RANDOM):
            continue
        whole = f"{op.name}.{op.variant_test_name}".rstrip(".")
        for name in args.types:
            dtype = getattr(torch, name)
            if dtype not in op.supported_dtypes("cpu"):
                continue
            for i, sample in enumerate(islice(op.sample_inputs("cpu", dtype), args.most)):
                folder = args.folder / f"{whole}-{name}-{i}"
                try:
                    with torch.no_grad():
                        write(Sample(op.op, ((sample.input, *sample.args), sample.kwargs)), folder)
                    counts["exported"] += 1
                except Exception as error:  # of many kinds, where the sample cannot be exported
                    counts[f"not exported: {type(error).__name__}"] += 1
        print(whole, dict(counts), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
