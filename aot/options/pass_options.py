"""Rows of the table of options about extensions, passes and what is shown of them."""

from __future__ import annotations

from pathlib import Path

from aot.codegen.dataclass import dataclass
from aot.options.commands import COMPILE, GRAPH, LOOKS, READ, TEXTS
from aot.options.declaration import Group, Option, Record, option
from aot.options.forms import PATH, PATHS, SEQUENCE
from aot.options.model_options import ModelOptions
from aot.options.texts import (
    names_of,
    paths_of,
)


@dataclass(frozen=True, slots=True)
class PassOptions(ModelOptions):
    """Options about extensions, passes and dumps; `CompileOptions` in `table` describes the values."""

    extensions: Path | None = option(
        None,
        help="Folder of your operations and passes; their code is run",
        group=Group.EXTENSIONS,
        commands=(*GRAPH, "verify", "info"),
        metavar="DIR",
        keyword=PATH,
        by_content=True,
        record=Record.NAMES,
    )
    transformations_config: tuple[Path, ...] = option(
        (),
        help="Configuration of transformations, JSON",
        group=Group.EXTENSIONS,
        commands=(*GRAPH, "verify"),
        flags=("--transformations-config", "--transformations_config"),
        metavar="F.json,...",
        read=paths_of,
        extra_flag=Option(
            help="Layers of Caffe that keep their type: CustomLayersMapping.xml",
            group=Group.EXTENSIONS,
            flags=("-k",),
            metavar="F.xml,...",
            read=paths_of,
        ),
        keyword=PATHS,
        by_content=True,
        record=Record.NAMES,
    )
    enable_transforms: tuple[str, ...] | None = option(
        None,
        help="Transformations of extensions to switch on",
        group=Group.EXTENSIONS,
        commands=READ,
        metavar="NAME,...",
        read=names_of,
        keyword=SEQUENCE,
        environment="MO_ENABLED_TRANSFORMS",
    )
    disable_transforms: tuple[str, ...] | None = option(
        None,
        help="Transformations of extensions to switch off",
        group=Group.EXTENSIONS,
        commands=READ,
        metavar="NAME,...",
        read=names_of,
        keyword=SEQUENCE,
        environment="MO_DISABLED_TRANSFORMS",
    )
    save_temps: Path | None = option(
        None,
        help="Folder for the text of every stage",
        group=Group.STAGES,
        commands=COMPILE,
        keyword=False,
        harmless=LOOKS,
    )
    print_after: tuple[str, ...] = option(
        (),
        help="Print the graph, or steps, after a pass",
        group=Group.STAGES,
        commands=COMPILE,
        metavar="PASS|all",
        read=tuple,
        several=True,
        keyword=False,
        harmless=LOOKS,
    )
    stop_after_rewrite: int | None = option(
        None,
        help="Make only the first N rewrites of the graph",
        group=Group.STAGES,
        commands=TEXTS,
        metavar="N",
        least=0,
        keyword=False,
    )
    stop_after_lowering: int | None = option(
        None,
        help="Run only the first N lowering passes",
        group=Group.STAGES,
        commands=TEXTS,
        metavar="N",
        least=0,
        keyword=False,
    )
    verify: bool = option(
        False,
        help="Check the graph, or the steps, after each pass",
        group=Group.STAGES,
        commands=COMPILE,
        harmless="it checks, and changes nothing",
    )
