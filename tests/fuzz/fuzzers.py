"""All kinds of fuzzers, by name."""

from tests.fuzz.calls import Calls
from tests.fuzz.case import Fuzzer
from tests.fuzz.graphs import Graphs
from tests.fuzz.ir_mutants import IrMutants
from tests.fuzz.onnx_graphs import OnnxGraphs
from tests.fuzz.onnx_mutants import OnnxMutants
from tests.fuzz.pairs import Pairs
from tests.fuzz.pt2_mutants import Pt2Mutants
from tests.fuzz.tf_mutants import TfMutants
from tests.fuzz.tflite_mutants import TfliteMutants

FUZZERS: dict[str, Fuzzer] = {
    f.name: f
    for f in (
        IrMutants(),
        OnnxMutants(),
        TfMutants(),
        TfliteMutants(),
        Pt2Mutants(),
        Graphs(),
        Calls(),
        OnnxGraphs(),
        Pairs(),
    )
}
