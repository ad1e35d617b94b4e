"""The operations of other formats that can be read, as pages: `aot ops --format onnx --markdown` and so on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import field
from importlib import import_module

from aot.codegen.dataclass import dataclass
from aot.frontends.caffe.registry import CONVERSIONS as CAFFE
from aot.frontends.conversion.node_context import Conversion
from aot.frontends.onnx.registry import CONVERSIONS as ONNX
from aot.frontends.paddle.older import rows as paddle_rows
from aot.frontends.paddle.registry import CONVERSIONS as PADDLE
from aot.frontends.pt2.registry import CONVERSIONS as PYTORCH
from aot.frontends.pt2.registry import OF_COMPLEX
from aot.frontends.tf.registry import CONVERSIONS as TENSORFLOW
from aot.frontends.tf.unsupported.reasons import REASON, REASONS
from aot.frontends.tflite.registry import CONVERSIONS as TFLITE
from aot.frontends.tflite.registry import EXACT

HEAD = ("| family | operations |", "|--|--|")


@dataclass(frozen=True, slots=True)
class Page:
    """The operations of a format by family, between a page's first paragraphs and its last ones."""

    title: str
    count: str
    families: Mapping[str, Iterable[str]]
    tail: tuple[str, ...] = ()
    walked: Mapping[str, Iterable[str]] = field(default_factory=dict[str, Iterable[str]])  # read without a conversion

    @property
    def rows(self) -> list[tuple[str, list[str]]]:
        """The families and their operations, in the order of the page."""
        return [(what, sorted(kinds)) for what, kinds in (*sorted(self.families.items()), *self.walked.items())]

    @property
    def kinds(self) -> set[str]:
        """All operations that can be read."""
        return {kind for _, kinds in self.rows for kind in kinds}

    def markdown(self) -> str:
        """Return the page."""
        rows = [_row(what, kinds) for what, kinds in self.rows]
        return "\n".join([self.title, self.count.format(len(self.kinds)), "", *HEAD, *rows, *self.tail, ""])

    def text(self) -> str:
        """Return lines for a terminal."""
        lines = (f"{what}:\n    {' '.join(kinds)}" for what, kinds in self.rows)
        return "\n".join([*lines, self.count.format(len(self.kinds))])


def _row(what: str, kinds: Iterable[str]) -> str:
    return f"| {what} | {_listed(kinds)} |"


def _listed(kinds: Iterable[str]) -> str:
    return " ".join(f"`{k}`" for k in sorted(kinds))


def _by_family(conversions: Mapping[str, Conversion]) -> dict[str, list[str]]:
    """Return operations by the family that the module of their conversion declares in its first line."""
    result = defaultdict[str, list[str]](list)
    for kind, conversion in conversions.items():
        module = import_module(conversion.__module__)
        result[(module.__doc__ or "").strip().partition("\n")[0].rstrip(".:")].append(kind)
    return result


def onnx() -> Page:
    title = """# Operations of ONNX

The operations of ONNX that can be read; made by `aot ops --format onnx --markdown`. Each conversion is compared with
ONNX Runtime on cases of its own, with fixed sizes and with sizes left open. Other domains than ONNX's own stand before
the name. Functions, of the standard and of files, are read as the operations that they are made of.
"""
    domains = {kind.rpartition(".")[0] for kind in ONNX.load()} - {""}
    count = f"{{}} operations, of ONNX and the domains {' and '.join(sorted(domains))}."
    return Page(title, count, _by_family(ONNX.load()))


def tensorflow() -> Page:
    title = """# Operations of TensorFlow

The operations of TensorFlow that can be read; made by `aot ops --format tensorflow --markdown`. Each conversion is
compared with TensorFlow 2.21 on cases of its own, with fixed sizes and with sizes left open.

- Random numbers are TensorFlow's for RandomUniform, RandomStandardNormal and RandomUniformInt of i32, if the file has a
  seed, in each inference those of the first one; others are of the right distribution. Without a seed: `--seed`.
- Complex tensors are two real ones between operations; an output of the network is real.
- Strings are constants, or inputs that are moved and looked up in tables.
- Integers divided by 0 give 0, and indices out of range read 0 or write nothing.
- Equal scores keep the order of their places: TopKV2, NonMaxSuppression*, CombinedNonMaxSuppression.
"""
    importer, frames = (import_module(f"aot.frontends.tf.graph.{name}") for name in ("importer", "frames"))
    import_module("aot.frontends.tf.files.reader")  # it has the rules registered
    families = _by_family({k: f for k, f in TENSORFLOW.load().items() if k not in REASON})
    ends = ("Const", "Placeholder", "PlaceholderV2")
    walked = {*ends, *importer.CALLS, *frames.FLOW, *importer.RULES} - set(REASON)
    walked -= {k for kinds in families.values() for k in kinds}
    dropped = ("Assert", "ControlTrigger", "NoOp", "PrintV2", "TensorArrayCloseV3")  # nothing reads data of these
    others = {
        "Edges of a graph, functions, variables, tables, control flow": walked,
        "Dropped: no data comes from them": dropped,
    }
    rule = "Each with the reason that the error gives. Operations in neither table have no conversion."
    reasons = (_row(reason, kinds) for reason, kinds in REASONS.values())
    tail = ("", "## Refused", "", rule, "", "| reason | operations |", "|--|--|", *reasons)
    return Page(title, "{} operations.", families, tail, others)


def tflite() -> Page:
    title = """# Operations of TensorFlow Lite

The operations of TensorFlow Lite that can be read; made by `aot ops --format tflite --markdown`. [The page](tflite.md)
of the format says what holds for quantised tensors.
"""
    within_a_level = ("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM")  # sums are exact; LiteRT approximates functions of gates
    import_module("aot.frontends.tflite.reader")  # it has the rules registered
    rules = import_module("aot.frontends.tflite.importer").RULES
    families = _by_family({**rules, **TFLITE.load()})
    read, known = {k for kinds in families.values() for k in kinds}, builtins()
    tail = (
        "",
        "## Quantised",
        "",
        "Bit for bit what LiteRT's reference kernels give, where all tensors have 8 bits; convolutions,",
        "FULLY_CONNECTED and QUANTIZE also where they have 16, QUANTIZE where they have 32:",
        "",
        _listed({*EXACT} - {*within_a_level}),
        "",
        f"Within a level of LiteRT's: {' and '.join(f'`{k}`' for k in within_a_level)} of 8 bits",
        "with cell states of 16; data of 16 bits and an SVDF's state of 8, as TensorFlow Lite for microcontrollers has",
        "them, are read, too.",
        "",
        "## Refused",
        "",
        _listed(known - read),
    )
    count = f"{len(read & known)} of {len(known)} operations of the schema, and {len(read - known)} custom ones."
    return Page(title, count, families, tail)


def builtins() -> set[str]:
    """Return all operations of TensorFlow Lite's schema, but those that stand for others."""
    schema = import_module("aot.frontends.tflite.schema")
    names = schema.names_of(schema.enumeration("BuiltinOperator"))
    return {*names.values()} - {"CUSTOM", "PLACEHOLDER_FOR_GREATER_OP_CODES"}


def pytorch() -> Page:
    title = """# Operations of PyTorch

The operations of exported programs that can be read; made by `aot ops --format pytorch --markdown`. Names are those of
the archive without `torch.ops.aten.`. Operations in place (`add_.Tensor`) are these, followed by a write; views that
are written to are written through.
"""
    import_module("aot.frontends.pt2.files.reader")  # it has the rules registered
    rules = import_module("aot.frontends.pt2.graph.importer").RULES
    families = _by_family(PYTORCH.load())
    converted = {k for kinds in families.values() for k in kinds}
    dropped = ("_assert_tensor_metadata.default", "sym_constrain_range.default", "sym_constrain_range_for_size.default")
    others = {
        "Operations that take complex numbers, too": OF_COMPLEX,
        "Assertions and sub-graphs": set(rules) - converted,
        "Dropped: they promise what is checked anyway": dropped,
    }
    return Page(title, "{} operations.", families, walked=others)


def caffe() -> Page:
    title = """# Layers of Caffe

The types of layers that can be read; made by `aot ops --format caffe --markdown`. [The page](caffe.md) of the format
says how. Each conversion is compared with OpenCV, or with NumPy where Caffe computes otherwise.
"""
    reader = import_module("aot.frontends.caffe.kinds")
    walked = {
        "Inputs, and constant data": (*reader.INPUTS, "DummyData"),
        "Read without an operation": ("Silence", "Split"),
    }
    tail = ("", "## Refused", "", f"{_listed(reader.FROM_FILES)}: they read data sets.")
    return Page(title, "{} types.", _by_family(CAFFE.load()), tail, walked)


def paddle() -> Page:
    title = """# Operations of PaddlePaddle

The operations of PaddlePaddle that can be read; made by `aot ops --format paddle --markdown`. [The page](paddle.md) of
the format says how. Each conversion is compared with PaddlePaddle's own results, from files of versions 3 and 2.
Operations in place (`relu_`) are these.
"""
    older = sorted(f"`{old}`" for old, row in paddle_rows().items() if old != row.kind)
    tail = ("", "## Names of version 2", "", f"Read as the operations above: {' '.join(older)}.")
    walked = {"Inputs, outputs and weights": ("builtin.parameter", "data", "feed", "fetch")}
    return Page(title, "{} operations.", _by_family(PADDLE.load()), tail, walked)


FORMATS = {
    "onnx": onnx,
    "tensorflow": tensorflow,
    "tflite": tflite,
    "pytorch": pytorch,
    "caffe": caffe,
    "paddle": paddle,
}
