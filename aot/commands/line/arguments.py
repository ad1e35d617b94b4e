"""Arguments and options that commands share: their types for typer, and the compiler's options that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from aot.commands.line.command import is_supervised
from aot.options import (
    CompileOptions,
    bytes_of,
    channels_of,
    cut_of,
    dims_of,
    layouts_of,
    names_of,
    shapes_of,
    specialise_of,
    values_of,
)


class Emit(StrEnum):
    SO, OBJ = "so", "obj"


class CacheAction(StrEnum):
    LS, VERIFY, GC = "ls", "verify", "gc"


class Weights(StrEnum):
    EMBEDDED, EXTERNAL = "embedded", "external"


APPLICATION: dict[str, Any] = {
    "no_args_is_help": True,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["--help", "-h"]},
}

Model = Annotated[
    Path,
    typer.Argument(
        exists=True, help="Model file: .xml with its .bin, .onnx, .pb or a SavedModel, .tflite, .pt2, .gguf"
    ),
]
Runnable = Annotated[Path, typer.Argument(exists=True, help="m.so, or a model file to compile in memory")]
LanguageModel = Annotated[
    Path, typer.Argument(exists=True, help="m.so, or the file of a language model to compile in memory")
]
Library = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="m.so")]
Key = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Ed25519 key, PEM")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show errors only")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output; its 'version' is raised when it changes")]
Target = Annotated[
    str, typer.Option(help="native, aarch64, x86-64-v2, -v3, -v4, -v4-bf16, -v4-amx; several: x86-64-v2,v3")
]
Cores = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Cores that schedules are chosen for; default: 2, for native those of this machine"
    ),
]
Layout = Annotated[list[str] | None, typer.Option(metavar="INPUT=NHWC", help="Layout in which callers give an input")]
Mean = Annotated[
    str | None,
    typer.Option(
        "--mean",
        "--mean_values",
        "--mean-values",
        metavar="INPUT[1,2,3]",
        help="Subtract these numbers from the channels of an input",
    ),
]
Scale = Annotated[
    str | None,
    typer.Option(
        "--scale",
        "--scale_values",
        "--scale-values",
        metavar="INPUT[1,2,3]",
        help="Divide the channels of an input by these numbers",
    ),
]
Reverse = Annotated[
    bool,
    typer.Option(
        "--reverse-channels",
        "--reverse_input_channels",
        "--reverse-input-channels",
        help="Callers give BGR where the model wants RGB",
    ),
]
ReverseOf = Annotated[str | None, typer.Option(metavar="INPUT,...", help="The same, for these inputs only")]
Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        "--input_shape",
        "--input-shape",
        metavar="[INPUT=]SHAPE",
        help="Shape of an input: x=1x3x64x64, y=n,?; of the only one: 1,3,64,64",
    ),
]
Dims = Annotated[list[str] | None, typer.Option(metavar="NAME=1..64", help="Name and range of a varying dimension")]
Values = Annotated[list[str] | None, typer.Option(metavar="INPUT=3|[1,-1]|x.npy", help="Make an input a constant")]
Feeds = Annotated[list[str] | None, typer.Option(metavar="CONSTANT", help="Make a constant an optional input")]
CutAt = Annotated[
    str | None, typer.Option(metavar="INPUT:OUTPUT", help="Compile only the layers between tensors: a,b:c")
]
Signature = Annotated[str | None, typer.Option(metavar="NAME", help="Signature of a SavedModel that is read")]
Specialise = Annotated[
    list[str] | None, typer.Option(metavar="NAME=1,8", help="Add code for these sizes of a varying dimension")
]
SmallWeights = Annotated[
    bool,
    typer.Option(
        "--small-weights", help="Store weights in as few bytes as hold them: no Winograd, f16 or bytes where exact"
    ),
]
PlainProducts = Annotated[bool, typer.Option("--plain-products", help="Neither Winograd nor Strassen: they round more")]
LayoutChange = Annotated[
    bool, typer.Option("--disable-layout-change", help="Leave the Transposes of NHWC networks, for comparisons")
]
MaxContext = Annotated[
    int | None,
    typer.Option(min=1, metavar="TOKENS", help="Tokens that a language model has room for; more are refused"),
]
RowLengths = Annotated[
    bool,
    typer.Option(
        "--row-lengths", help="Language model: rows of a batch may have different lengths, as aot serve needs"
    ),
]
LastLogits = Annotated[bool, typer.Option("--last-logits", help="Language model: logits of the last token only")]
Precision = Annotated[
    str,
    typer.Option(
        metavar="f32|bf16|f16|auto[,LAYER=f32]", help="Type in which layers compute; auto: by --data of aot compile"
    ),
]
FastMath = Annotated[
    bool, typer.Option("--fast-math", help="bf16: the fastest sums of this target; other targets round differently")
]
Activations = Annotated[
    str, typer.Option(metavar="f32|int8", help="int8: quantise the data of products whose weights have 8 bits or fewer")
]
Samples = Annotated[
    list[str] | None, typer.Option("--data", metavar="x.npz | NAME=x.npy", help="Inputs; default: noise")
]
Data = Annotated[
    Path | None, typer.Option(exists=True, dir_okay=False, help="Sample inputs for --precision auto: x.npz")
]
MaxError = Annotated[float, typer.Option(min=0, help="Largest error of results that --precision auto accepts")]
Seed = Annotated[
    int | None, typer.Option(min=0, help="Seed of operations that draw random numbers; without one they are refused")
]
Extensions = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder of your operations and passes; their code is run")
]
Config = Annotated[
    str | None,
    typer.Option(
        "--transformations-config",
        "--transformations_config",
        metavar="F.json,...",
        help="Configuration of transformations, JSON",
    ),
]
Enable = Annotated[str | None, typer.Option(metavar="NAME,...", help="Transformations of extensions to switch on")]
Disable = Annotated[str | None, typer.Option(metavar="NAME,...", help="Transformations of extensions to switch off")]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="m.so, or m.o to link; default: MODEL.so")]
Results = Annotated[Path | None, typer.Option("-o", "--output", help="out.npz, or out.npy for a single output")]
Passes = Annotated[list[str] | None, typer.Option(metavar="PASS|all", help="Print the graph, or steps, after a pass")]
Memory = Annotated[
    str | None, typer.Option(metavar="2GB", help="Limit of memory while compiling; default: by the size of the model")
]
Seconds = Annotated[
    float | None, typer.Option(min=0.01, help="Limit of seconds of compiling; default: by the size of the model")
]
Rewrites = Annotated[int | None, typer.Option(min=0, metavar="N", help="Make only the first N rewrites of the graph")]
Lowerings = Annotated[int | None, typer.Option(min=0, metavar="N", help="Run only the first N lowering passes")]
Bound = Annotated[
    float | None, typer.Option(min=0, help="Largest error allowed, over the largest element; default: 1e-4 for f32")
]
Expect = Annotated[Path | None, typer.Option(exists=True, metavar="out.npz", help="Compare the results with these")]
Threads = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Use at most N threads; default: all that this process may use")
]
TokenizerFile = Annotated[
    Path | None,
    typer.Option("--tokenizer", exists=True, help="tokenizer.json or m.gguf; default: the one beside the model"),
]
Temperature = Annotated[float, typer.Option(min=0, help="0: always the most probable token; above 0: draw one")]
TopK = Annotated[int, typer.Option(min=0, metavar="N", help="Draw among the N most probable tokens; 0: among all")]
TopP = Annotated[float, typer.Option(metavar="P", help="Draw among the fewest tokens whose probabilities sum to P")]
StopTokens = Annotated[list[int] | None, typer.Option(metavar="ID", help="A token that ends the text; may be repeated")]
DrawSeed = Annotated[int, typer.Option(min=0, help="Seed: equal ones draw equal tokens")]

_READERS: dict[str, tuple[str, Callable[[Any], Any]]] = {  # by parameter: field of CompileOptions, how it is read
    "layout": ("layouts", layouts_of),
    "mean": ("mean", lambda text: channels_of(text, "mean")),
    "scale": ("scale", lambda text: channels_of(text, "scale")),
    "shape": ("shapes", shapes_of),
    "dim": ("dims", dims_of),
    "value": ("values", values_of),
    "feed": ("feeds", lambda names: tuple(names or ())),
    "specialise": ("specialise", specialise_of),
    "cut": ("cut", cut_of),
    "transformations_config": ("transformations_config", lambda text: tuple(map(Path, names_of(text)))),
    "enable_transforms": ("enable_transforms", names_of),
    "disable_transforms": ("disable_transforms", names_of),
    "print_after": ("print_after", lambda names: tuple(names or ())),
    "max_memory": ("max_memory", bytes_of),
}
_PLAIN = (
    *("target", "signature", "extensions", "seed", "small_weights", "plain_products", "precision", "save_temps"),
    *("cores", "disable_layout_change", "fast_math", "activations", "max_context", "last_logits", "row_lengths"),
    *("stop_after_rewrite", "stop_after_lowering", "verify", "tune", "kernel_cache", "max_seconds"),
)


def options_of(given: Mapping[str, Any], **more: Any) -> CompileOptions:
    """Return the compiler's options for the parameters of a command, which are `locals()` at its beginning, and `more`.

    UsageError for a text that cannot be read.
    """
    found = {field: read(given[name]) for name, (field, read) in _READERS.items() if name in given}
    found |= {name: given[name] for name in _PLAIN if name in given}
    if "reverse_channels" in given:
        found["reverse_channels"] = ("",) * given["reverse_channels"] + names_of(given["reverse_channels_of"])
    if "max_memory" in given:
        found["hard_limits"] = is_supervised()
    return CompileOptions(**found | more)
