"""Random numbers."""

from __future__ import annotations

from aot.frontends.tflite.registry import TfliteNode, tflite
from aot.ir.graph import OutPort

KINDS = {"RANDOM_STANDARD_NORMAL": "RandomStandardNormal", "RANDOM_UNIFORM": "RandomUniform"}


def _seeds(node: TfliteNode) -> dict[str, int]:
    return {name: node.integer(name, 0) for name in ("seed", "seed2")}


@tflite(*KINDS)
def random(node: TfliteNode, shape: OutPort) -> OutPort:
    return node.tf(KINDS[node.kind], shape, dtype=node.output_type().value, **_seeds(node))


@tflite("MULTINOMIAL", stored=True)
def multinomial(node: TfliteNode, logits: OutPort, count: OutPort) -> OutPort:
    return node.tf("Multinomial", logits, count, output_dtype=node.output_type().value, **_seeds(node))
