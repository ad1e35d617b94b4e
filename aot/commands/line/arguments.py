"""Arguments and options that commands share, as types; the compiler's options are in `aot.options.table`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from aot.commands.line.declared import argument, option
from aot.options.declaration import Group


class Emit(StrEnum):
    SO, OBJ = "so", "obj"


class CacheAction(StrEnum):
    LS, VERIFY, GC = "ls", "verify", "gc"


Model = Annotated[
    Path,
    argument(
        exists=True,
        help="Model file: .xml with its .bin, .onnx, .pb or a SavedModel, .tflite, .prototxt, .pt2, .gguf; "
        "folder of Hugging Face",
    ),
]
Runnable = Annotated[Path, argument(exists=True, help="m.so, or a model file to compile in memory")]
LanguageModel = Annotated[
    Path, argument(exists=True, help="m.so, or the file or folder of a language model to compile in memory")
]
Encoder = Annotated[Path, argument(exists=True, help="m.so, or the folder of an encoder to compile in memory")]
Library = Annotated[Path, argument(exists=True, dir_okay=False, help="m.so")]
Key = Annotated[Path, argument(exists=True, dir_okay=False, help="Ed25519 key, PEM")]
Debug = Annotated[bool, option("--debug", help="Show the traceback of an error")]
Quiet = Annotated[bool, option("--quiet", "-q", help="Show errors only")]
Json = Annotated[bool, option("--json", help="Machine-readable output; its 'version' is raised when it changes")]
Samples = Annotated[list[str] | None, option("--data", metavar="x.npz | NAME=x.npy", help="Inputs; default: noise")]
Data = Annotated[
    Path | None,
    option(
        exists=True, dir_okay=False, help="Sample inputs for --precision auto: x.npz", rich_help_panel=Group.NUMBERS
    ),
]
MaxError = Annotated[
    float, option(min=0, help="Largest error of results that --precision auto accepts", rich_help_panel=Group.NUMBERS)
]
Output = Annotated[
    Path | None, option("-o", "--output", help="m.so, or m.o to link; default: MODEL.so", rich_help_panel=Group.OUTPUT)
]
Results = Annotated[Path | None, option("-o", "--output", help="out.npz, or out.npy for a single output")]
Bound = Annotated[
    float | None, option(min=0, help="Largest error allowed, over the largest element; default: 1e-4 for f32")
]
Threads = Annotated[
    int | None, option(min=1, metavar="N", help="Use at most N threads; default: all that this process may use")
]
TokenizerFile = Annotated[
    Path | None, option("--tokenizer", exists=True, help="tokenizer.json or m.gguf; default: the one beside the model")
]
Temperature = Annotated[float, option(min=0, help="0: always the most probable token; above 0: draw one")]
TopK = Annotated[int, option(min=0, metavar="N", help="Draw among the N most probable tokens; 0: among all")]
TopP = Annotated[float, option(metavar="P", help="Draw among the fewest tokens whose probabilities sum to P")]
StopTokens = Annotated[list[int] | None, option(metavar="ID", help="A token that ends the text; may be repeated")]
Adapter = Annotated[
    Path | None,
    option("--lora", exists=True, help="Adapter of m.so's matrices: a folder of PEFT, or GGUF (--lora-rank)"),
]
DrawSeed = Annotated[int, option(min=0, help="Seed: equal ones draw equal tokens")]
