"""Exports networks with random weights, and what PyTorch computes with them.

    python -m benchmarks.pytorch.export FOLDER vision [NAME ..] [--timed --onnx]  needs torch, torchvision
    python -m benchmarks.pytorch.export FOLDER text [NAME ..] [--timed --onnx]    needs torch, transformers
    python -m benchmarks.pytorch.export FOLDER quantised                          needs torch, torchao
    python -m benchmarks.pytorch.export FOLDER zoo [NAME ..] [--onnx]             needs torch, timm, transformers
    python -m benchmarks.pytorch.export FOLDER written [NAME ..] [--onnx]         needs torch, torchvision

Each network gets a folder: `model.pt2`; `inputs_N.npz` and `outputs_N.npz`, arrays in order, for each of its sizes;
with `--onnx`, `model.onnx` of the same weights.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from benchmarks.pytorch.network import Network

KINDS = ("vision", "text", "quantised", "zoo", "written")


def arrays(values: Any) -> list[np.ndarray]:
    """The tensors in arguments or results, in order."""
    return [t.detach().numpy() for t in pytree.tree_leaves(values) if isinstance(t, torch.Tensor)]


def exported(network: Network, module: torch.nn.Module) -> tuple[Any, bool]:
    """The exported program, and whether its sizes are open as the network says."""
    given = network.inputs(*network.sizes[0])
    if network.dynamic:
        try:
            return torch.export.export(module, (), given, dynamic_shapes=network.dynamic), True
        except Exception as error:  # of many kinds, where sizes cannot be open
            print(f"  fixed sizes: {str(error).strip().splitlines()[0][:160]}", flush=True)
    return torch.export.export(module, (), given), False


def write(network: Network, folder: Path, with_onnx: bool) -> None:
    """Write the folder of a network."""
    begin = time.perf_counter()
    with torch.no_grad():
        module = network.module()
        program, opened = exported(network, module)
        folder.mkdir(parents=True, exist_ok=True)
        torch.export.save(program, folder / "model.pt2")
        for i, sizes in enumerate(network.sizes if opened or not network.dynamic else network.sizes[:1]):
            given = network.inputs(*sizes)
            np.savez(folder / f"inputs_{i}.npz", *arrays(given))
            np.savez(folder / f"outputs_{i}.npz", *arrays(module(**given)))
        if with_onnx:
            torch.onnx.export(program, f=folder / "model.onnx", dynamo=True, external_data=True, verbose=False)
    print(f"{network.name}: {'open' if opened else 'fixed'} sizes, {time.perf_counter() - begin:.0f} s", flush=True)


def main() -> int:
    """0; 1 if a network could not be exported."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pytorch.export", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--timed", action="store_true", help="the networks that `benchmarks.pytorch.timing` is for")
    parser.add_argument("--onnx", action="store_true", help="write model.onnx, too")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    failed, kind = 0, import_module(f"benchmarks.pytorch.{args.kind}")
    for network in kind.timed() if args.timed else kind.networks():
        if args.names and network.name not in args.names:
            continue
        try:
            write(network, args.folder / network.name, args.onnx)
        except Exception as error:  # one that cannot be exported does not stop the others
            failed += 1
            reason = str(error).strip().rpartition("\n\n\n")[2]  # a listing of the whole program comes first
            print(f"{network.name}: not exported: {type(error).__name__}: {reason[:300]}", flush=True)
        gc.collect()
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
