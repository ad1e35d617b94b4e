"""The phases of Model Optimizer as passes of this compiler, for extensions that have classes for them.

    front          our graph -> Model Optimizer's -> extractors -> transformations -> our graph; conversions follow
    middle, back   our graph, with shapes -> Model Optimizer's with data nodes -> transformations -> our graph

The second pass runs before all passes of this compiler but those of the front phase: its transformations see the
operations of the network, not this compiler's form of them.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.ir.graph import Graph as IrGraph
from aot.ir.graph import Node as IrNode
from aot.ir.op import Foreign
from aot.mo.bridge.carried import Carried
from aot.mo.bridge.channels_first import change_layout
from aot.mo.bridge.from_mo import imported
from aot.mo.bridge.shown_windows import hide_windows
from aot.mo.bridge.to_mo import exported
from aot.mo.config.registry import entries, entries_of
from aot.mo.extraction import describe_of, extract
from aot.mo.front.caffe.custom_layers_mapping import CUSTOM_LAYERS, custom_layers
from aot.mo.front.tf.replacement import mark_bodies
from aot.mo.graph.graph import Graph
from aot.mo.loader import Class, Declared, Switches, check_entries, declare
from aot.mo.ops.op import MADE_IN
from aot.mo.ops.registered import classes
from aot.mo.ordering import sort_transforms, split
from aot.mo.run import run_transform, run_transforms
from aot.mo.transforms import is_placeholder, placeholder, placeholders
from aot.mo.utils.error import Error
from aot.passes.front.scope_region_symbols import scope_region_symbols
from aot.runtime.errors import AotError
from aot.runtime.regular import open_file

CONVOLUTIONS = ("Conv2D", "DepthwiseConv2dNative", "Conv3D", "Conv2DBackpropInput", "Conv3DBackpropInputV2")
LAYOUT_CHANGE = "ApplyNHWCtoNCHWpermutation"  # transformation after which graphs are NCHW


def phase_passes(
    folders: Sequence[Sequence[Class]],
    config: Sequence[Path],
    switches: Switches,
    framework: str,
    keep_layout: bool = False,
) -> tuple[tuple[object, ...], tuple[tuple[str, bytes], ...]]:
    """Return the passes that run the declared classes of each folder, and the files that the result depends on.

    `config`: configuration files, JSON, or XML for layers of Caffe; `switches`: transformations that the user has
    switched on or off; `framework`: the model's; `keep_layout`: it does not change to NCHW. Error for classes that
    cannot run or be sorted, and for an entry that none reads.
    """
    declared = declare(folders)
    listed = [file for file in config if file.suffix == CUSTOM_LAYERS]
    if listed and framework != "caffe":
        raise Error("-k: a list of layers is for networks of Caffe, got one of {}", framework)
    declared.extractors |= custom_layers(listed)
    configured = entries_of(file for file in config if file not in listed)
    check_entries(declared, configured)
    own = {cls.__name__ for cls in declared.transforms}
    anchors = [cls for cls in placeholders(framework) if cls.__name__ not in own]
    order = sort_transforms([*anchors, *declared.transforms])
    front, later = split(order)
    carried = Carried()
    passes: list[object] = [MoFront(framework, declared, tuple(front), configured, switches, carried, keep_layout)]
    if later:
        nchw, back = (set(order[order.index(placeholder(name)) :]) for name in (LAYOUT_CHANGE, "BackStart"))
        ends = frozenset(nchw), frozenset(back)
        passes.append(MoMiddle(framework, declared, tuple(later), *ends, configured, switches, carried))
    return tuple(passes), (*_inputs(config), ("switches", str(switches).encode()))


def _inputs(config: Sequence[Path]) -> tuple[tuple[str, bytes], ...]:
    files: list[tuple[str, bytes]] = []
    for path in config:
        with open_file(path, "transformations-config") as stream:
            files.append((path.name, stream.read()))
    return tuple(files)


@dataclass(frozen=True, slots=True)
class MoFront:
    """Extractors, and the transformations of the front phase."""

    framework: str
    declared: Declared
    transforms: tuple[Class, ...]
    entries: Any
    switches: Switches = field(default_factory=Switches)
    carried: Carried = field(default_factory=Carried)
    keep_layout: bool = False
    name: str = "mo_front"
    phase: str = "front"
    run_after: tuple[str, ...] = ("FrontStart",)
    run_before: tuple[str, ...] = ("FrontFinish",)
    run_not_recursively: bool = True
    changes_interface: bool = True

    def __call__(self, graph: IrGraph) -> None:
        """Change the graph; errors name the class, the file and the line of the extension."""
        with classes(dict(self.declared.operations)), entries(self.entries):
            stays = self.keep_layout or (self.framework == "tf" and not _has_channels_last(graph))
            shown = exported(
                graph,
                "front",
                framework=self.framework,
                pb=describe_of(self.framework),
                cli=_options(self.framework, self.keep_layout, stays),
                layout="NCHW" if stays else None,
            )
            shown.graph["fw_opset_version"] = _opset(graph)
            mark_bodies(shown)
            extract(shown, self.declared, self.switches)
            run_transforms(shown, self.transforms, self.switches)
            self.carried.take(shown)
            imported(shown, graph)


@dataclass(frozen=True, slots=True)
class MoMiddle:
    """The transformations of the middle and the back phase."""

    framework: str
    declared: Declared
    transforms: tuple[Class, ...]
    channels_first: frozenset[Class]  # those that see NCHW
    back: frozenset[Class]
    entries: Any
    switches: Switches = field(default_factory=Switches)
    carried: Carried = field(default_factory=Carried)
    name: str = "mo_middle"
    phase: str = "middle"
    run_after: tuple[str, ...] = ("MiddleStart",)
    run_before: tuple[str, ...] = ("MiddleFinish",)
    run_not_recursively: bool = True
    changes_interface: bool = True

    def __call__(self, graph: IrGraph) -> None:
        """Change the graph; errors name the class, the file and the line of the extension."""
        with classes(dict(self.declared.operations)), entries(self.entries):
            shown = self._shown(graph, self.carried.graph.get("layout"))
            for cls in self.transforms:
                if cls in self.channels_first and shown.graph["layout"] == "NHWC":
                    shown = self._with_channels_first(shown, graph)
                if cls in self.back and shown.stage != "back":
                    hide_windows(shown)
                    _set_stage(shown, "back")
                run_transform(shown, cls, self.switches)
            self._check(shown, imported(shown, graph))
            scope_region_symbols(graph)  # bodies may be new, and nodes have other names

    def _check(self, graph: Graph, owners: dict[str, IrNode]) -> None:
        """Error for a node with inputs that do not fit it, with the class and the line that have made it."""
        for id, node in owners.items():
            try:
                node.operands()
            except AotError as error:
                location = graph.nodes[id].get(MADE_IN) if id in graph else None
                names = ", ".join(cls.__name__ for cls in self.transforms if not is_placeholder(cls))
                where = f" (made in {location})" if location else ""
                rule = f"extension {names}: {graph.nodes[id]['name'] if id in graph else node.name}"
                raise Error(f"{rule}: {type(error).__name__}: {error}{where}") from error

    def _shown(self, graph: IrGraph, layout: str | None) -> Graph:
        """Return Model Optimizer's graph, with the attributes that extensions have set."""
        shown = exported(graph, "middle", framework=self.framework, layout=layout)
        self.carried.give(shown)
        return shown

    def _with_channels_first(self, made: Graph, graph: IrGraph) -> Graph:
        """Return the graph with its tensors in NCHW: by the compiler's rules for its operations."""
        self.carried.take(made)
        self._check(made, imported(made, graph))
        scope_region_symbols(graph)
        change_layout(graph, self.carried)
        return self._shown(graph, "NCHW")


_FALSE = (  # options of Model Optimizer 2024.6, and of earlier releases, by their defaults
    "static_shape use_new_frontend reverse_input_channels progress stream_output share_weights compress_to_fp16 "
    "disable_omitting_optional enable_flattening_nested_params remove_output_softmax remove_memory is_python_api_used "
    "generate_deprecated_IR_V7 enable_concat_optimization disable_fusing disable_resnet_optimization"
)
_NONE = (
    "input_model input output input_shape example_input batch scale extensions transformations_config version "
    "input_model_is_text input_checkpoint input_meta_graph saved_model_dir saved_model_tags model_name output_dir "
    "tensorflow_custom_operations_config_update tensorflow_object_detection_api_pipeline_config tensorboard_logdir "
    "tensorflow_custom_layer_libraries input_proto caffe_parser_path k counts finegrain_fusing "
    "freeze_placeholder_with_value placeholder_shapes placeholder_data_types"
)


def _options(framework: str, keep_layout: bool, stays: bool) -> Namespace:
    """Return the options that extensions ask for: Model Optimizer's defaults. `stays`: the layout does not change."""
    settings: dict[str, Any] = {**dict.fromkeys(_FALSE.split(), False), **dict.fromkeys(_NONE.split())}
    settings |= dict.fromkeys(("mean_values", "scale_values", "source_layout", "target_layout", "layout"), ())
    settings |= {
        "layout_values": {},
        "mean_scale_values": {},
        "transform": "",
        "log_level": "ERROR",
        "data_type": "float",
    }
    settings |= {"framework": framework, "silent": True, "use_legacy_frontend": True}
    settings |= {"disable_nhwc_to_nchw": keep_layout, "auto_disable_nhwc_to_nchw": stays and not keep_layout}
    return Namespace(**settings)


def _has_channels_last(graph: IrGraph) -> bool:
    """True if a convolution of a TensorFlow graph, or of a body, has its channels last."""
    ops = [n.op for n in graph.all_nodes()]
    return any(
        isinstance(op, Foreign) and op.kind in CONVOLUTIONS and dict(op.attrs).get("data_format", "NHWC")[-1] == "C"
        for op in ops
    )


def _opset(graph: IrGraph) -> int:
    """Return the version of ONNX's operation set that the file imports; 0 without one."""
    known = (dict(n.op.attrs) for n in graph.nodes.values() if isinstance(n.op, Foreign) and n.op.dialect == "onnx")
    return next((attrs["opset"] for attrs in known if not attrs.get("domain")), 0)


def _set_stage(graph: Graph, stage: str) -> None:
    for id in graph.nodes():
        for name in graph.nodes[id].get("sub_graphs") or ():
            _set_stage(graph.nodes[id][name], stage)
    graph.stage = stage
