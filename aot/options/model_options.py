"""Rows of the table of options about the target and the interface of a model: its inputs, sizes and outputs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from aot.codegen.dataclass import dataclass
from aot.options.commands import AGAIN, CODE, COMPILE, INTERFACE, MODEL, TEXTS
from aot.options.declaration import Group, Option, Record, option
from aot.options.forms import CHANNELS, DIMS, LAYOUTS, PATH, PLACE, SEQUENCE, SHAPES, SIZES, VALUES
from aot.options.rules import NAMED, NAMES, NUMBERS, OFFSETS, POSITIVE
from aot.options.texts import (
    Nested,
    channels_of,
    cut_of,
    dims_of,
    layouts_of,
    names_of,
    offsets_of,
    shapes_of,
    specialise_of,
    values_of,
)


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Options about the target and the interface of a model; `CompileOptions` in `table` describes the values."""

    target: str = option(
        "native",
        help="native, or a name that aot info --targets lists: x86-64-v3, windows-x86-64-v3; several: x86-64-v2,v3",
        commands=CODE,
        record=Record.ALWAYS,
    )
    cores: int | None = option(
        None,
        help="Cores that schedules are chosen for; default: 2, for native those of this machine",
        group=Group.NUMBERS,
        commands=COMPILE,
        metavar="N",
        least=1,
        rule=POSITIVE,
    )
    layouts: tuple[tuple[str, str], ...] = option(
        (),
        help="Layout in which callers give an input",
        group=Group.MODEL,
        commands=INTERFACE,
        flags=("--layout",),
        metavar="INPUT=NHWC",
        read=layouts_of,
        several=True,
        keyword=LAYOUTS,
        rule=NAMED,
        record=Record.ALWAYS,
    )
    mean: tuple[tuple[str | int, tuple[float, ...]], ...] = option(
        (),
        help="Subtract these numbers from the channels of an input",
        group=Group.MODEL,
        commands=INTERFACE,
        flags=("--mean", "--mean_values", "--mean-values"),
        metavar="INPUT[1,2,3]",
        read=partial(channels_of, option="mean"),
        keyword=CHANNELS,
        rule=NUMBERS,
    )
    mean_file: Path | None = option(
        None,
        help="Subtract an image from the only input: binaryproto of Caffe",
        group=Group.MODEL,
        commands=(*INTERFACE, *AGAIN),
        flags=("--mean-file", "--mean_file"),
        metavar="F.binaryproto",
        keyword=PATH,
        by_content=True,
        record=Record.NAMES,
    )
    mean_file_offsets: tuple[int, ...] = option(
        (),
        help="Row and column of that image where the input begins; default: in the middle",
        group=Group.MODEL,
        commands=INTERFACE,
        flags=("--mean-file-offsets", "--mean_file_offsets"),
        metavar="(ROW,COLUMN)",
        read=offsets_of,
        keyword=PLACE,
        rule=OFFSETS,
    )
    scale: tuple[tuple[str | int, tuple[float, ...]], ...] = option(
        (),
        help="Divide the channels of an input by these numbers",
        group=Group.MODEL,
        commands=INTERFACE,
        flags=("--scale", "--scale_values", "--scale-values"),
        metavar="INPUT[1,2,3]",
        read=partial(channels_of, option="scale"),
        keyword=CHANNELS,
        rule=NUMBERS,
    )
    reverse_channels: tuple[str, ...] = option(
        (),
        help="Callers give BGR where the model wants RGB",
        group=Group.MODEL,
        commands=INTERFACE,
        flags=("--reverse-channels", "--reverse_input_channels", "--reverse-input-channels"),
        text=bool,
        text_default=False,
        read=lambda on: ("",) * on,
        extra_flag=Option(
            help="The same, for these inputs only",
            group=Group.MODEL,
            flags=("--reverse-channels-of",),
            metavar="INPUT,...",
            read=names_of,
        ),
        keyword=SEQUENCE,
        rule=NAMES,
    )
    shapes: tuple[tuple[str, tuple[int | str, ...]], ...] = option(
        (),
        help="Shape of an input: x=1x3x64x64, y=n,?; of the only one: 1,3,64,64",
        group=Group.MODEL,
        commands=(*MODEL, "run", "bench"),
        flags=("--shape", "--input_shape", "--input-shape"),
        metavar="[INPUT=]SHAPE",
        read=shapes_of,
        several=True,
        keyword=SHAPES,
        rule=NAMED,
    )
    dims: tuple[tuple[str, int, int | None], ...] = option(
        (),
        help="Name and range of a varying dimension",
        group=Group.MODEL,
        commands=(*MODEL, "run", "bench"),
        flags=("--dim",),
        metavar="NAME=1..64",
        read=dims_of,
        several=True,
        keyword=DIMS,
        rule=NAMED,
    )
    values: tuple[tuple[str, Nested], ...] = option(
        (),
        help="Make an input a constant",
        group=Group.MODEL,
        commands=(*MODEL, "verify"),
        flags=("--value",),
        metavar="INPUT=3|[1,-1]|x.npy",
        read=values_of,
        several=True,
        keyword=VALUES,
        rule=NAMED,
        record=Record.NAMES,
    )
    feeds: tuple[str, ...] = option(
        (),
        help="Make a constant an optional input",
        group=Group.MODEL,
        commands=(*COMPILE, "provenance"),
        flags=("--feed",),
        metavar="CONSTANT",
        read=tuple,
        several=True,
        keyword=SEQUENCE,
        rule=NAMES,
    )
    specialise: tuple[tuple[str, tuple[int, ...]], ...] = option(
        (),
        help="Add code for these sizes of a varying dimension",
        group=Group.MODEL,
        commands=(*TEXTS, "provenance"),
        metavar="NAME=1,8",
        read=specialise_of,
        several=True,
        keyword=SIZES,
        rule=NAMED,
    )
    cut: tuple[tuple[str, ...], tuple[str, ...]] | None = option(
        None,
        help="Compile only the layers between tensors: a,b:c",
        group=Group.MODEL,
        commands=MODEL,
        metavar="INPUT:OUTPUT",
        read=cut_of,
        keyword=False,
    )
    signature: str | None = option(
        None,
        help="Signature that is read, or network of a container",
        group=Group.MODEL,
        commands=(*MODEL, "info"),
        metavar="NAME",
    )
