"""The graph passes of one compilation: its options' passes, the compiler's and the user's, run in one order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from aot.extensions.folder import Extensions
from aot.frontends import front_passes, mean_image
from aot.frontends.conversion.reshapeable import Reshapeable
from aot.frontends.conversion.walk import ToOpset
from aot.ir.graph import Graph
from aot.ir.text.printer import print_graph as graph_text
from aot.options import CompileOptions
from aot.passes.front.adapters import Adapters
from aot.passes.front.cut import Cut
from aot.passes.front.input_feeds import InputFeeds
from aot.passes.front.input_shapes import InputShapes
from aot.passes.front.input_values import InputValues
from aot.passes.front.last_logits import LastLogits
from aot.passes.middle.layout.change_layout import change_layout
from aot.passes.middle.layout.interface_layout import InterfaceLayout
from aot.passes.middle.layout.preprocess import MeanImage, Preprocess
from aot.passes.pass_order import PassItem, sort_passes
from aot.passes.pipeline import Pass, pipeline
from aot.passes.run import FRONT_FINISH, PassReport, RunReport, run_items, run_passes
from aot.passes.weights.round_weights import RoundWeights
from aot.precision import precision_of
from aot.runtime.errors import PassError, ShapeError, UsageError
from aot.text.library_texts import is_of_language_model


def run_all(
    graph: Graph,
    options: CompileOptions,
    extensions: Extensions | None,
    lowering: list[str],
    progress: Callable[[str, int, int], None],
) -> RunReport:
    """Make a graph canonical, in place. `lowering`: names of passes that run later, which `print_after` may name.

    Raises UsageError for passes that cannot be ordered, and the errors of passes.
    """
    passes = _passes(_options_for(graph, options))
    extra = extensions.passes if extensions is not None else ()
    items = _sorted(passes, extra)
    names = _names(items)
    if unknown := set(options.print_after) - {"all", *names, *lowering}:
        raise UsageError(f"--print-after: must be one of {', '.join([*names, *lowering])}, got {min(unknown)}")

    def observe(done: PassReport, graph: Graph) -> None:
        progress("optimize", names.index(done.name) + 1, len(names))
        if options.on_dump is not None and {"all", done.name} & set(options.print_after):
            options.on_dump(done.name, graph_text(graph))

    try:
        return run_items(
            graph,
            items,
            stop_after_rewrite=options.stop_after_rewrite,
            observe=observe,
            check_each=options.verify,
        )
    except ShapeError as error:
        if options.shapes:
            error.add_note("with the shapes that were given for inputs: the network may be made for others")
        raise


def run_front(graph: Graph, options: CompileOptions, extensions: Extensions | None, reshapeable: bool = False) -> None:
    """Run the passes of the front phase, which leave a graph in operations of the opset; it is changed in place.

    `reshapeable`: sizes are computed, and loops stay loops, if that is possible. Raises the errors of `run_all`.
    """
    passes, extra = _passes(_options_for(graph, options)), extensions.passes if extensions is not None else ()
    _ = _sorted(passes, extra)  # UsageError if there is no order
    chosen = [Reshapeable(p) if reshapeable and isinstance(p, ToOpset) else p for p in passes]
    run_passes(graph, chosen, extra, until=FRONT_FINISH)


def run_later_extensions(graph: Graph, options: CompileOptions, extensions: Extensions | None) -> None:
    """Run the extensions of the middle and the back phase, in their order and without the compiler's own passes.

    The graph is one that `run_front` has left; it is changed in place. Raises the errors of `run_all`.
    """
    items = sort_passes(*all_passes(options, extensions))
    names = [item.name for item in items]
    later = [item for item in items[names.index(FRONT_FINISH) :] if item.extension]
    if later:
        run_items(graph, later)


def all_passes(
    options: CompileOptions, extensions: Extensions | None
) -> tuple[tuple[Pass | str, ...], tuple[object, ...]]:
    """Return the passes of a compilation, its anchors and the user's passes; UsageError if no order exists."""
    passes, extra = _passes(options), extensions.passes if extensions is not None else ()
    _ = _sorted(passes, extra)
    return passes, extra


def _options_for(graph: Graph, options: CompileOptions) -> CompileOptions:
    """Return the options for a graph: one made for a language model gives the last logits, unless told otherwise."""
    if options.last_logits is None and is_of_language_model(graph.rt_info):
        return replace(options, last_logits=True)
    return options


def _passes(options: CompileOptions) -> tuple[Pass | str, ...]:
    """Return the compiler's passes and anchors."""
    input_passes = (InputFeeds(options.feeds), InputValues(options.values), InputShapes(options.shapes, options.dims))
    convert = front_passes(options.seed)
    cut = (Cut(*options.cut, convert),) if options.cut else ()  # first: the others name inputs of the part
    front: tuple[Pass, ...] = (*cut, *input_passes, *convert)
    precision = precision_of(options.precision)
    file = options.mean_file
    image = None if file is None else MeanImage(partial(mean_image, file), options.mean_file_offsets)
    prepared = image or options.mean or options.scale or options.reverse_channels
    prepare = Preprocess(options.mean, options.scale, options.reverse_channels, image)
    last_passes: tuple[Pass, ...] = (prepare,) if prepared else ()
    last_passes += (InterfaceLayout(options.layouts),) if options.layouts else ()
    last_passes += (
        (Adapters(options.lora_rank),) if options.lora_rank is not None else ()
    )  # finds weights by their names
    last_passes += (RoundWeights(options.weights),) if options.weights is not None else ()
    last_passes += (LastLogits(),) if options.last_logits else ()
    passes = pipeline(
        (*front, *last_passes),
        named=options.extensions is not None,
        context=options.max_context,
        row_lengths=options.row_lengths,
        precision=None if precision.computes_in_f32 else precision,
    )
    return tuple(p for p in passes if p is not change_layout) if options.disable_layout_change else passes


def _names(items: list[PassItem]) -> list[str]:
    """Return the names of passes and extensions, except anchors."""
    return [item.name for item in items if item.target is not None]


def _sorted(passes: tuple[Pass | str, ...], extra: tuple[object, ...]) -> list[PassItem]:
    """Return passes and extensions in run order; UsageError if there is no order."""
    try:
        return sort_passes(passes, extra)
    except PassError as error:
        raise UsageError(f"--extensions: {error}") from error
