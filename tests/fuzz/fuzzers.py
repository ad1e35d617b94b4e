"""All kinds of fuzzers, by name."""

from tests.fuzz.case import Fuzzer
from tests.fuzz.graphs import Graphs
from tests.fuzz.ir_mutants import IrMutants
from tests.fuzz.onnx_mutants import OnnxMutants

FUZZERS: dict[str, Fuzzer] = {f.name: f for f in (IrMutants(), OnnxMutants(), Graphs())}
