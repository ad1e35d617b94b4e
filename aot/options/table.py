"""The table of options: one row declares each, and all other forms of an option follow from it.

row  ->  field of CompileOptions, checked        aot.options.table
         keyword of `compile_model`              aot.options.keywords, aot.options.typed
         parameter of commands, the page cli.md  aot.commands.line.parameters, aot.commands.line.page
         options that a library records          aot.compilation.recorded_options
         key of the cache                        aot.compilation.cache
"""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from pathlib import Path

from aot.codegen.dataclass import dataclass
from aot.options.commands import AGAIN, CODE, COMPILE, GRAPH, LIMITED, LIMITS, LOOKS, TEXTS
from aot.options.declaration import KEY, Group, Option, Record, option
from aot.options.forms import BYTES, PATH
from aot.options.pass_options import PassOptions
from aot.options.rules import ACTIVATIONS, AUTO, POSITIVE, WEIGHTS
from aot.options.stage import Dump, Event
from aot.options.texts import (
    bytes_of,
    weights_of,
)
from aot.precision import precision_of, without_auto
from aot.runtime.errors import UsageError


@dataclass(frozen=True, slots=True)
class CompileOptions(PassOptions):
    """Options of a compilation, a row each; the help of a row says what it does, these are the forms of its values.

    `shapes`: an input and, for each dimension, a number, a name or `?` for the file's; `dims`: a name with its least
    and greatest value (see `aot.passes.front.input_shapes`). `mean`, `scale`: an input by name or position, "" for all
    of floats, with a number for each of its channels or one for all: means are subtracted, then it is divided by
    scales. `reverse_channels`: inputs, "" for all images of three channels. `cut`: tensors or layers that become the
    inputs, and those that become the outputs, either of which may be empty. `specialise`: names of dims and sizes that
    there are versions for, besides the general one. `precision`: a type, or by patterns of names,
    `bf16,stem=f32,head.*=f32`. `max_memory`: bytes that compiling may add to the process. `extensions`: a folder (see
    `aot.extensions.folder`), or several with commas between them. `print_after`: names of passes, or `all`, whose
    result goes to `on_dump(name, text)`; `on_event(stage, done, total)` reports progress.
    """

    level: int | None = option(
        1,
        help="Level of LLVM's passes over drivers and scalar kernels; None: they are left out",
        record=Record.ELSEWHERE,
        recorded_as="the code generator tells it among the options",
    )
    external_weights: bool = option(
        False,
        help="Where weights are: in the library, or in MODEL.weights; int4, int8, bf16: round matrices",
        group=Group.OUTPUT,
        commands=CODE,
        flags=("--weights",),
        metavar="embedded|external[,int4|int8|bf16]",
        read=lambda text: weights_of(text)[0],
        record=Record.ELSEWHERE,
        recorded_as="the entry `external`; the code is the same, wherever the weights are",
    )
    weights: str | None = option(
        None,
        help="Round matrices of weights: to int4 or int8, with a scale for 64 of a row, or to bf16",
        group=Group.OUTPUT,
        commands=CODE,
        flags=("--weights",),
        flag_of="external_weights",
        read=lambda text: weights_of(text)[1],
        rule=WEIGHTS,
    )
    small_weights: bool = option(
        False,
        help="Store weights in as few bytes as hold them: no Winograd, f16 or bytes where exact",
        group=Group.NUMBERS,
        commands=CODE,
        record=Record.ALWAYS,
    )
    plain_products: bool = option(
        False,
        help="Neither Winograd nor Strassen: they round more",
        group=Group.NUMBERS,
        commands=CODE,
        record=Record.ALWAYS,
    )
    fast_compile: bool = option(
        False,
        help="Compile fast, to try things out: little code in simple forms; an inference takes longer",
        group=Group.NUMBERS,
        commands=TEXTS,
        record=Record.IF_SET,
    )
    disable_layout_change: bool = option(
        False,
        help="Leave the Transposes of NHWC networks, for comparisons",
        group=Group.NUMBERS,
        commands=(*TEXTS, "convert"),
        flags=("--disable-layout-change", "--disable_nhwc_to_nchw"),
    )
    max_context: int | None = option(
        None,
        help="Tokens that a language model has room for; more are refused",
        group=Group.LANGUAGE,
        commands=TEXTS,
        metavar="TOKENS",
        least=1,
    )
    last_logits: bool | None = option(
        None,
        help="Language model: logits of the last token or all; default: the last for GGUF and folders, all for graphs",
        group=Group.LANGUAGE,
        commands=CODE,
        flags=("--last-logits/--all-logits",),
    )
    row_lengths: bool = option(
        False,
        help="Language model: rows of a batch may have different lengths, as aot serve needs",
        group=Group.LANGUAGE,
        commands=TEXTS,
    )
    lora_rank: int | None = option(
        None,
        help="Language model: adapters (LoRA) of at most this rank may be given when it runs",
        group=Group.LANGUAGE,
        commands=TEXTS,
        metavar="N",
        least=1,
    )
    precision: str | None = option(
        None,
        help="Type in which layers compute, auto: by --data; default: f32, bf16 for decoders with such weights",
        group=Group.NUMBERS,
        commands=CODE,
        metavar="f32|bf16|f16|auto[,LAYER=f32]",
    )
    fast_math: bool = option(
        False,
        help="bf16, f16: the fastest sums of this target; other targets round differently",
        group=Group.NUMBERS,
        commands=CODE,
    )
    activations: str = option(
        AUTO,
        help="int8: round data of products whose weights have 8 bits or fewer; auto: if such weights are large",
        group=Group.NUMBERS,
        commands=CODE,
        metavar="auto|f32|int8",
        rule=ACTIVATIONS,
    )
    seed: int | None = option(
        None,
        help="Seed of operations that draw random numbers; without one they are refused",
        group=Group.MODEL,
        commands=GRAPH,
        least=0,
    )
    max_memory: int | None = option(
        None,
        help="Limit of memory while compiling; default: by the size of the model",
        group=Group.LIMITS,
        commands=LIMITED,
        metavar="2GB",
        read=bytes_of,
        keyword=BYTES,
        rule=POSITIVE,
        harmless=LIMITS,
    )
    max_seconds: float | None = option(
        None,
        help="Limit of seconds of compiling; default: by the size of the model",
        group=Group.LIMITS,
        commands=LIMITED,
        least=0.01,
        rule=POSITIVE,
        harmless=LIMITS,
    )
    hard_limits: bool = option(
        False,
        help="The process is the compiler's own, and gets limits of the system while it compiles",
        keyword=False,
        harmless=LIMITS,
    )
    tune: float | None = option(
        None,
        help="Time schedules on this machine for so long, and take the fastest",
        group=Group.NUMBERS,
        commands=COMPILE,
        metavar="SECONDS",
        least=0,
        record=Record.ELSEWHERE,
        recorded_as="`tuned` is the number of schedules that measuring chose; "
        "those in the tune file give the code again",
    )
    tune_file: Path | None = option(
        None,
        help="File of the fastest schedules; default: OUTPUT.tune.json",
        group=Group.NUMBERS,
        commands=(*COMPILE, *AGAIN),
        keyword=PATH,
        record=Record.ELSEWHERE,
        recorded_as="`tuned`, as of tune; who compiles again gives the file again",
    )
    kernel_cache: Path | None = option(
        None,
        help="Where object code is kept; default: the user's cache",
        group=Group.NUMBERS,
        commands=COMPILE,
        metavar="FOLDER|off",
        keyword=PATH,
        harmless="object code that is kept is the code that would be made",
    )
    on_event: Event | None = option(None, help="Function that is told the progress", keyword=False, harmless=LOOKS)
    on_dump: Dump | None = option(None, help="Function that gets texts of print_after", keyword=False, harmless=LOOKS)

    def __post_init__(self) -> None:
        for name, row in options().items():
            value = getattr(self, name)
            if row.rule is not None and not row.rule.holds(value):
                raise UsageError(f"CompileOptions: {name} {row.rule.text}, got {value!r}")
        computes_in_f32 = precision_of(without_auto(self.precision)).computes_in_f32
        if self.tune is not None and not computes_in_f32:
            raise UsageError(f"CompileOptions: tune is for layers in f32, got precision {self.precision}")
        if self.tune is not None and self.fast_compile:
            raise UsageError("CompileOptions: tune looks for the fastest code, got fast_compile")


@lru_cache(maxsize=1)
def options() -> dict[str, Option]:
    """Return the rows of the table by the names of their fields."""
    return {f.name: f.metadata[KEY] for f in fields(CompileOptions)}
