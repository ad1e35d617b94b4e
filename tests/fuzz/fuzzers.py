"""All kinds of fuzzers, by name."""

from tests.fuzz.calls import Calls
from tests.fuzz.case import Fuzzer
from tests.fuzz.graphs.ir import Graphs
from tests.fuzz.graphs.onnx import OnnxGraphs
from tests.fuzz.graphs.pairs import Pairs
from tests.fuzz.mutants.caffe import CaffeMutants
from tests.fuzz.mutants.gguf import GgufMutants
from tests.fuzz.mutants.ir import IrMutants
from tests.fuzz.mutants.onnx import OnnxMutants
from tests.fuzz.mutants.paddle import PaddleMutants
from tests.fuzz.mutants.pt2 import Pt2Mutants
from tests.fuzz.mutants.tf import TfMutants
from tests.fuzz.mutants.tflite import TfliteMutants
from tests.fuzz.mutants.tokenizers import TokenizerMutants

FUZZERS: dict[str, Fuzzer] = {
    f.name: f
    for f in (
        IrMutants(),
        OnnxMutants(),
        TfMutants(),
        TfliteMutants(),
        CaffeMutants(),
        PaddleMutants(),
        Pt2Mutants(),
        GgufMutants(),
        TokenizerMutants(),
        Graphs(),
        Calls(),
        OnnxGraphs(),
        Pairs(),
    )
}
