"""Small right files that mutants are made of: a layer of every operation, control flow, ONNX's own node tests."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path

import onnx.backend.test

from aot.ir.graph import Graph
from tests.dynamic import loops, networks
from tests.fuzz.case import Case
from tests.fuzz.ir_writer import written
from tests.networks import NETWORKS
from tests.properties.drawing import random_draw, with_run_time_sizes
from tests.properties.oracle import model

FAMILIES = ("elementwise", "gathering", "moving", "windowed", "mixing", "detecting")
MAKERS = tuple(m for f in FAMILIES for m in importlib.import_module(f"tests.properties.{f}").TRIALS)
LARGEST = 30_000  # bytes of an ONNX file


def ir_case(graph: Graph) -> Case:
    xml, weights = written(graph)
    return Case({"model.xml": xml.encode(), "model.bin": weights})


@cache
def networks_made() -> tuple[Case, ...]:
    """Networks of the tests: usual kinds, varying sizes, control flow."""
    makers = [*NETWORKS.values(), networks.mlp, networks.conv_net]
    makers += [getattr(n, "make", n) for n in getattr(loops, "NETWORKS", {}).values()]
    return tuple(ir_case(make()) for make in makers)


def ir_seed(seed: int) -> Case:
    """One time in four a network, else a layer."""
    if not seed % 4:
        made = networks_made()
        return made[seed // 4 % len(made)]
    trial = MAKERS[seed % len(MAKERS)](random_draw(seed))
    xml, weights = model(with_run_time_sizes(trial) if seed % 3 else trial)
    return Case({"model.xml": xml.encode(), "model.bin": weights})


@cache
def onnx_paths() -> tuple[Path, ...]:
    """Small models of ONNX's backend tests, which come with its package."""
    data = Path(onnx.backend.test.__file__).parent / "data"
    found = [*data.glob("node/*/model.onnx"), *data.glob("simple/*/model.onnx"), *data.glob("pytorch-*/*/model.onnx")]
    return tuple(p for p in sorted(found) if p.stat().st_size < LARGEST)


def onnx_seed(seed: int) -> Case:
    paths = onnx_paths()
    return Case({"model.onnx": paths[seed % len(paths)].read_bytes()})
