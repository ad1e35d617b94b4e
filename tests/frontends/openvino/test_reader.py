"""Reading of OpenVINO IR: what a good file gives, and what a bad one is told."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import openvino
import pytest

from aot.codegen.ir.loops import Var
from aot.frontends import read_model
from aot.ir.graph import Graph
from aot.ir.interpret import interpret
from aot.ir.registry import all_operations, find
from aot.opset.control.port_maps import BackEdge, InputMap
from aot.runtime.errors import AotError, CorruptError, ModelError, UnsupportedError, UsageError
from tests.frontends.openvino.irfile import constant, layer, network, parameter, result, write

IDENTITY = network([parameter(), result(1)], "0.0->1.0")


def read(folder: Path, xml: str, weights: bytes | None = b"") -> Graph:
    return read_model(write(folder, xml, weights))


def data_of(folder: Path, element_type: str, shape: str, raw: bytes, size: int | None = None) -> np.ndarray:
    """Return the data of a Constant with these bytes, at offset 1."""
    xml = network([constant(0, "c", element_type, shape, 1, len(raw) if size is None else size), result(1)], "0.0->1.0")
    data = read(folder, xml, b"\xff" + raw).nodes[0].data
    assert data is not None
    return data


def refusal(folder: Path, xml: str, weights: bytes | None = b"") -> AotError:
    with pytest.raises(AotError) as caught:
        read(folder, xml, weights)
    return caught.value


def test_parameter_and_result(tmp_path: Path) -> None:
    xml = network([parameter(names=r"a,b\,c"), result(1, more=' output_names="out"')], "0.0->1.0")
    graph = read(tmp_path, xml)
    assert [n.name for n in graph.parameters] == ["x"]
    assert graph.parameters[0].out_port(0).names == ("a", "b,c")
    assert str(graph.parameters[0].out_port(0).type) == "f32[2,3]"
    assert graph.results[0].out_port(0).names == ("out", "a", "b,c")
    assert graph.results[0].origin.layers == ("y",)
    assert graph.results[0].origin.file == graph.file == "m.xml"


def test_the_network_of_the_manual_is_read(tmp_path: Path) -> None:
    """Version 10, a Const by its offset, comments, and facts of a converter that nothing reads."""
    numbers = {"dilations": "1,1", "output_padding": "0,0", "pads_begin": "1,1", "pads_end": "1,1", "strides": "1,1"}
    layers = [
        parameter(shape="1,3,32,100"),
        layer(1, "w", "Const", outputs=(1,), element_type="f32", offset="0", shape="64,3,3,3", size="6912"),
        layer(
            2,
            "conv",
            "Convolution",
            inputs=(0, 1),
            outputs=(2,),
            extra="<!-- ports -->",
            auto_pad="same_upper",
            **numbers,
        ),
        layer(3, "act", "ReLU", inputs=(0,), outputs=(1,)),
        result(4),
    ]
    facts = '<meta_data><!-- debugging --><cli_parameters><data_type value="float"/>...</cli_parameters></meta_data>'
    xml = network(layers, "0.0->2.0 1.1->2.1 2.2->3.0 3.1->4.0", more=facts).replace('"11"', '"10"', 1)
    weights = np.random.default_rng(0).standard_normal((64, 3, 3, 3), np.float32)
    x = np.random.default_rng(1).standard_normal((1, 3, 32, 100), np.float32)
    graph, padded = read(tmp_path, xml, weights.tobytes()), np.pad(x[0], ((0, 0), (1, 1), (1, 1)))
    parts = (np.tensordot(weights[:, :, i, j], padded[:, i:, j:][:, :32, :100], 1) for i in range(3) for j in range(3))
    np.testing.assert_allclose(interpret(graph, [x])[0][0], np.maximum(sum(parts), 0), rtol=1e-4, atol=1e-4)
    assert graph.results[0].out_port(0).names == ("act",)


def test_result_without_output_names_has_those_of_its_tensor(tmp_path: Path) -> None:
    assert read(tmp_path, IDENTITY).results[0].out_port(0).names == ("x",)


def test_layers_in_any_order_with_any_ids(tmp_path: Path) -> None:
    xml = network(
        [
            result(70, "r"),
            layer(8, "p", "MatMul", inputs=(4, 9), outputs=(11,), transpose_b="TRUE"),
            parameter(5, "a"),
            parameter(900, "b"),
        ],
        "8.11->70.0 5.0->8.4 900.0->8.9",
    )
    graph = read(tmp_path, xml)
    product = graph.results[0].source(0).node
    assert product.op == all_operations()["MatMul"](transpose_b=True)
    assert [product.source(i).node.name for i in (0, 1)] == ["a", "b"]
    assert [p.name for p in graph.parameters] == ["a", "b"]


def test_type_names_ignore_case(tmp_path: Path) -> None:
    xml = IDENTITY.replace("Parameter", "pARAMETER").replace("Result", "RESULT").replace("f32", "F32")
    assert str(read(tmp_path, xml).results[0].out_port(0).type) == "f32[2,3]"


@pytest.mark.parametrize(
    ("text", "shown", "ranges"),
    [
        ("?,3,1..224,8..", "f32[x.d0,3,x.d2,x.d3]", [(0, None), (1, 225), (8, None)]),
        ("-1, ..8, 4..4", "f32[x.d0,x.d1,4]", [(0, None), (0, 9)]),
        ("", "f32[]", []),
        ("...", "f32[...]", []),
    ],
)
def test_dynamic_shapes(tmp_path: Path, text: str, shown: str, ranges: list[tuple[int, int | None]]) -> None:
    graph = read(tmp_path, network([parameter(shape=text), result(1)], "0.0->1.0"))
    type = graph.parameters[0].out_port(0).type
    assert str(type) == shown
    assert [(d.low, d.extent) for d in type.dims or () if isinstance(d, Var)] == ranges


def test_symbols_are_unique_in_a_model(tmp_path: Path) -> None:
    layers = [parameter(0, "a/b", "?"), parameter(1, "a_b", "?"), parameter(2, "0", "?"), result(3, "r")]
    graph = read(tmp_path, network(layers, "0.0->3.0"))
    assert [str(p.out_port(0).type) for p in graph.parameters] == ["f32[a_b.d0]", "f32[a_b.d0.2]", "f32[_0.d0]"]


@pytest.mark.parametrize(
    ("element_type", "raw", "values"),
    [
        ("f64", struct.pack("<2d", 1.5, -2), [1.5, -2]),
        ("f32", struct.pack("<2f", 1.5, -2), [1.5, -2]),
        ("f16", struct.pack("<2e", 1.5, -2), [1.5, -2]),
        ("bf16", bytes([0xC0, 0x3F, 0x00, 0xC0]), [1.5, -2]),
        ("i64", struct.pack("<2q", -1, 1 << 40), [-1, 1 << 40]),
        ("u64", struct.pack("<2Q", 1, (1 << 64) - 1), [1, (1 << 64) - 1]),
        ("i16", struct.pack("<2h", -1, 300), [-1, 300]),
        ("u16", struct.pack("<2H", 1, 65535), [1, 65535]),
        ("i8", bytes([255, 2]), [-1, 2]),
        ("boolean", bytes([0, 2]), [False, True]),
        ("u1", bytes([0b10110000]), [1, 0, 1, 1]),
        ("u2", bytes([0b11100100, 0b01]), [0, 1, 2, 3, 1]),
        # 8 values 0..7: low two bits 00 01 10 11 | 00 01 10 11, then the third bits 0000 1111
        ("u3", bytes([0b00011011, 0b00011011, 0b00001111]), [0, 1, 2, 3, 4, 5, 6, 7]),
        ("u4", bytes([0x21, 0x03]), [1, 2, 3]),
        ("i4", bytes([0xF7, 0x08]), [7, -1, -8]),
        ("nf4", bytes([0xF0]), [0, 15]),
        # 4 values 1 18 35 52: low nibbles 1 2 | 3 4, then the upper two bits 00 01 10 11
        ("u6", bytes([0x12, 0x34, 0b00011011]), [1, 18, 35, 52]),
        ("f4e2m1", bytes([0xA1, 0x07]), [0.5, -1, 6]),
        ("f8e4m3", bytes([0x38, 0xC0]), [1, -2]),
        ("f8e5m2", bytes([0x3C, 0xC0]), [1, -2]),
        ("f8e8m0", bytes([127, 128]), [1, 2]),
    ],
)
def test_element_types(tmp_path: Path, element_type: str, raw: bytes, values: list[float]) -> None:
    data = data_of(tmp_path, element_type, str(len(values)), raw)
    assert data.shape == (len(values),)
    assert [v.item() if isinstance(v.item(), int) else float(v) for v in data] == values


def test_strings_are_read_from_their_table(tmp_path: Path) -> None:
    text = ["abc", "", "Ü\nn"]
    ends = np.cumsum([0, *(len(t.encode()) for t in text)]).tolist()
    raw = struct.pack("<5i", 3, *ends) + "".join(text).encode()
    assert data_of(tmp_path, "string", "3", raw).tolist() == text


@pytest.mark.parametrize("head", [(4, 0, 3, 3, 7), (3, 1, 3, 3, 7), (3, 0, 5, 3, 7), (3, 0, 3, 3, 9), (-1, 0, 0, 0, 0)])
def test_broken_strings(tmp_path: Path, head: tuple[int, ...]) -> None:
    with pytest.raises(CorruptError, match="string constant"):
        data_of(tmp_path, "string", "3", struct.pack("<5i", *head) + b"abcdefg")


def test_empty_constant_has_a_byte_that_says_nothing(tmp_path: Path) -> None:
    assert data_of(tmp_path, "f32", "0, 4", b"\0").shape == (0, 4)


def test_aligned_constants_are_views_and_may_share_bytes(tmp_path: Path) -> None:
    layers = [constant(0, "a", "f32", "2", 4, 8), constant(1, "b", "i8", "8", 4, 8), result(2), result(3, "z")]
    graph = read(tmp_path, network(layers, "0.0->2.0 1.0->3.0"), struct.pack("<3f", 0, 1, 2))
    a, b = graph.nodes[0].data, graph.nodes[1].data
    assert a is not None
    assert b is not None
    assert np.shares_memory(a, b)
    assert a.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("offset", "size", "rule"),
    [
        ("-4", "8", "must be inside m.bin of 8 bytes"),
        ("4", "8", "must be inside m.bin of 8 bytes"),
        ("9223372036854775800", "8", "must be inside m.bin of 8 bytes"),
        ("0", "-8", "must be inside m.bin of 8 bytes"),
        ("0", "4", r"f32\[2\] takes 8 bytes, got size 4"),
        ("x", "8", "offset must be an integer"),
    ],
)
def test_constants_outside_their_file(tmp_path: Path, offset: str, size: str, rule: str) -> None:
    node = layer(0, "weights", "Const", outputs=(0,), element_type="f32", shape="2", offset=offset, size=size)
    error = refusal(tmp_path, network([node, result(1)], "0.0->1.0"), bytes(8))
    assert isinstance(error, CorruptError)
    with pytest.raises(CorruptError, match=f"layer 'weights': .*{rule}"):
        raise error


def test_missing_weights(tmp_path: Path) -> None:
    xml = network([constant(0, "c", "f32", "2", 0, 8), result(1)], "0.0->1.0")
    assert "file with the weights is missing" in str(refusal(tmp_path, xml, None))
    assert read(tmp_path, IDENTITY, None).nodes


def test_weights_in_a_file_of_another_name(tmp_path: Path) -> None:
    path = write(tmp_path, network([constant(0, "c", "u8", "1", 0, 1), result(1)], "0.0->1.0"), None)
    other = tmp_path / "other.bin"
    other.write_bytes(b"\x07")
    data = read_model(path, other).nodes[0].data
    assert data is not None
    assert data.tolist() == [7]


def test_rt_info(tmp_path: Path) -> None:
    more = '<rt_info><info name="a b" value="1"/><model_info><labels value="1 2"/></model_info></rt_info>'
    extra = '<rt_info><attribute name="decompression" version="0"/></rt_info>'
    xml = network([parameter(), layer(1, "y", "Result", inputs=(0,), extra=extra)], "0.0->1.0", more=more)
    graph = read(tmp_path, xml)
    assert graph.rt_info == {"a b": "1", "model_info": {"labels": "1 2"}}
    assert graph.results[0].rt_info == {"decompression": {"version": "0"}}


def test_all_unsupported_operations_in_one_error(tmp_path: Path) -> None:
    layers = [parameter(), *(layer(i, f"n{i}", "Strange", "opset3", inputs=(0,), outputs=(1,)) for i in range(1, 13))]
    layers += [layer(13, "own", "Mine", "extension", inputs=(0,), outputs=(1,)), layer(14, "old", "Result", "")]
    error = refusal(tmp_path, network(layers))
    assert isinstance(error, UnsupportedError)
    assert "Strange (opset3) in n1, n2, n3, n4, n5, n6, n7, n8, n9, n10 and 2 more" in str(error)
    assert "Mine (extension) in own" in str(error)
    assert "Result (no version) in old" in str(error)


def product(id: int, name: str, **data: str) -> str:
    return layer(id, name, "MatMul", inputs=(0, 1), outputs=(2,), **data)


def relay(id: int = 1, more: str = "", **data: str) -> str:
    """A Parameter and the Result that reads it."""
    return network([parameter(0, "x", **data), result(id, "y", more)], "0.0->1.0")


CYCLE = [parameter(), product(1, "a"), product(2, "b"), result(3)]


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        ("<net", "m.xml: not well-formed XML"),
        ("<model/>", "m.xml: an IR file must begin with <net>, got <model>"),
        ('<!DOCTYPE net [<!ENTITY a "b">]>' + IDENTITY, "XML in UTF-8 or UTF-16 without document type and entities"),
        (IDENTITY.replace('version="11"', 'version="9"', 1), "IR versions 10 and 11 can be read, got 9"),
        ('<net name="m" version="11"><layers/></net>', "m.xml: a network needs layers, got none"),
        (network([parameter(3, "p"), result(3, "q")]), "m.xml: layers 'p' and 'q' have the same id 3"),
        (IDENTITY.replace('id="1"', 'id="one"'), "layer 'y': id must be an integer, got 'one'"),
        (network([layer(1, "y", "Result", inputs=(0, 0))]), "layer 'y': port ids must differ, got [0, 0]"),
        (network([parameter(), result(1)]), "layer 'y': input port 0 must be connected, got no edge"),
        (
            network([parameter(), result(1)], "0.0->1.0 0.0->1.0"),
            "layer 'y': there must be one edge into input port 0, got two",
        ),
        (network([parameter(), result(1)], "0.5->1.0"), "layer 'x': no output port 5, but an edge from it"),
        (network([parameter(), result(1)], "0.0->1.7"), "layer 'y': no input port 7, but an edge to it"),
        (
            network([parameter(), layer(1, "y", "Result", inputs=(0,), outputs=(1,)), result(2)], "0.0->1.0 1.1->2.0"),
            "layer 'y': a Result has no outputs, but an edge from it",
        ),
        (
            network([layer(0, "x", "Parameter", outputs=(0, 1), element_type="f32", shape="2"), result(1)], "0.0->1.0"),
            "layer 'x': a Parameter must have no inputs and one output, got 0 and 2",
        ),
        (network([parameter(), result(1)], "0.0->9.0"), "m.xml: edge 0.0 -> 9.0: there is no layer 9 in 'm'"),
        (network(CYCLE, "0.0->1.0 2.2->1.1 1.2->2.0 0.0->2.1 2.2->3.0"), "graph: cycle through layers a -> b"),
        (relay(shape="2,x"), "Parameter: attribute shape must be a shape, got '2,x'"),
        (relay(shape="2,-7"), "layer 'x': a tensor can have at most 2^48 elements and no negative"),
        (relay(shape="16777216,16777217"), "layer 'x': a tensor can have at most 2^48 elements"),
        (relay(shape="9..3"), "layer 'x': a range of sizes must rise, got '9..3'"),
        (relay(element_type="f31"), "attribute element_type must be an element type, got 'f31'"),
        (relay(element_type="dynamic"), "element type must be known, got dynamic"),
        (network([product(1, "a", transpose_a="maybe")]), "must be true or false, got 'maybe'"),
    ],
)
def test_malformed_files(tmp_path: Path, xml: str, message: str) -> None:
    error = refusal(tmp_path, xml)
    assert message in str(error)
    assert isinstance(error, ModelError | UnsupportedError)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_files_in_utf_16_are_read(tmp_path: Path, encoding: str) -> None:
    xml = IDENTITY.replace('name="y"', 'name="größe"')
    for mark in ("", "\ufeff"):
        head = f'<?xml version="1.0" encoding="{encoding[:6]}"?>'
        marked = mark if encoding[6:] in ("-le", "-be") else ""
        (tmp_path / "m.xml").write_bytes((marked + head + xml).encode(encoding))
        assert read_model(tmp_path / "m.xml").results[0].name == "größe"
    (tmp_path / "m.xml").write_bytes((head + "<!DOCTYPE net>" + xml).encode(encoding))
    with pytest.raises(CorruptError, match="without document type"):
        read_model(tmp_path / "m.xml")
    (tmp_path / "m.xml").write_bytes((head + xml).encode("utf-16") + b"!")
    with pytest.raises(CorruptError, match=r"not well-formed XML: .*utf-16"):
        read_model(tmp_path / "m.xml")


def test_every_operation_of_each_set_is_read() -> None:
    tables = sorted((Path(openvino.__file__).parent / "include/openvino/opsets").glob("opset*_tbl.hpp"))
    listed = {
        (name, int(table.name.removeprefix("opset").removesuffix("_tbl.hpp")))
        for table in tables
        for name in re.findall(r"^_OPENVINO_OP_REG\((\w+),", table.read_text(), re.MULTILINE)
    }
    assert len(listed) > 2500
    assert [(name, number) for name, number in sorted(listed) if find(name, number) is None] == []


def test_huge_networks_without_recursion(tmp_path: Path) -> None:
    count = 3000
    layers = [parameter(), *(product(i, f"n{i}") for i in range(1, count)), result(count)]
    edges = " ".join(f"{i - 1}.{2 if i > 1 else 0}->{i}.0 0.0->{i}.1" for i in range(1, count))
    xml = network(layers, f"{edges} {count - 1}.2->{count}.0").replace("2,3", "1,1")
    assert str(read(tmp_path, xml).results[0].out_port(0).type) == "f32[1,1]"


def body(tag: str, names: tuple[str, str] = ("p", "q")) -> str:
    return network([parameter(10, names[0]), result(20, names[1])], "10.0->20.0", tag=tag)


def if_layer(then: str, port: int = 1, internal: int = 10) -> str:
    maps = "".join(
        f'<{k}_port_map><input external_port_id="{port}" internal_layer_id="{internal}"/>'
        f'<output external_port_id="2" internal_layer_id="20"/></{k}_port_map>'
        for k in ("then", "else")
    )
    return layer(2, "choice", "If", "opset8", inputs=(0, 1), outputs=(2,), extra=maps + then + body("else_body"))


def branching(choice: str) -> str:
    return network([parameter(0, "c", "", "boolean"), parameter(1), choice, result(3)], "0.0->2.0 1.0->2.1 2.2->3.0")


def test_bodies_become_regions(tmp_path: Path) -> None:
    graph = read(tmp_path, branching(if_layer(body("then_body"))))
    node = graph.results[0].source(0).node
    assert sorted(node.regions) == ["else", "then"]
    assert [n.name for n in node.regions["then"].nodes.values()] == ["p", "q"]
    assert node.op == all_operations()["If"](**vars(node.op))
    (mapped,) = vars(node.op)["then_inputs"]
    assert (mapped.external, mapped.parameter, mapped.axis) == (1, 0, None)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (if_layer(body("then_body"), port=7), "'choice': then_port_map: external_port_id must be one of [0, 1], got 7"),
        (if_layer(body("then_body"), internal=20), "layer 20 of the body must be a Parameter, got Result"),
        (if_layer(""), "layer 'choice': If needs <then_body>, got none"),
        (if_layer(network([parameter(), result(1)], tag="then_body")), "layer 'y': input port 0 must be connected"),
    ],
)
def test_malformed_regions(tmp_path: Path, choice: str, message: str) -> None:
    assert message in str(refusal(tmp_path, branching(choice)))


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        ('<input external_port_id="0" internal_layer_id="10"/>', ""),
        ("", "got 0 and 0 for 'p'"),
        ('<input external_port_id="0" internal_layer_id="10"/>' * 2, "got 2 and 0 for 'p'"),
    ],
)
@pytest.mark.parametrize("kind", ["If", "TensorIterator"])
def test_inputs_of_a_body_are_fed_exactly_once(tmp_path: Path, kind: str, maps: str, message: str) -> None:
    """A Parameter that nothing in the body reads may stay without."""
    out = '<output external_port_id="2" internal_layer_id="20"/>'
    inner = [parameter(10, "p"), parameter(11, "unread"), result(20, "q")]
    tags = ("then_", "else_") if kind == "If" else ("",)
    fed = maps.replace('"0"', '"1"') if kind == "If" else maps
    extra = "".join(
        f"<{t}port_map>{fed}{out}</{t}port_map>" + network(inner, "10.0->20.0", tag=f"{t}body") for t in tags
    )
    made = layer(2, "held", kind, "opset8" if kind == "If" else "opset1", inputs=(0, 1), outputs=(2,), extra=extra)
    xml = network([parameter(0, "c", "", "boolean"), parameter(1), made, result(3)], "0.0->2.0 1.0->2.1 2.2->3.0")
    if message:
        assert message in str(refusal(tmp_path, xml))
    else:
        assert len(read(tmp_path, xml).nodes) == 4


@pytest.mark.parametrize("times", [0, 2])
def test_each_output_of_a_body_has_one_result(tmp_path: Path, times: int) -> None:
    port = '<output external_port_id="2" internal_layer_id="20"/>'
    choice = if_layer(body("then_body")).replace(port, port * times, 1)
    assert f"got {times} for port 2" in str(refusal(tmp_path, branching(choice)))


def test_bodies_nested_too_deep(tmp_path: Path) -> None:
    inner = body("then_body")
    for _ in range(40):
        layers = [parameter(10, "c", "", "boolean"), parameter(1), if_layer(inner), result(20)]
        inner = network(layers, "10.0->2.0 1.0->2.1 2.2->20.0", tag="then_body")
    assert "bodies can have at most 32 levels" in str(refusal(tmp_path, branching(if_layer(inner))))


def test_port_maps_of_a_loop(tmp_path: Path) -> None:
    maps = (
        '<port_map><input external_port_id="2" internal_layer_id="11" axis="1" start="-1" end="0" stride="-1" '
        'part_size="2"/>'
        '<input external_port_id="1" internal_layer_id="12"/>'
        '<output external_port_id="3" internal_layer_id="20"/>'
        '<input external_port_id="-1" internal_layer_id="10" purpose="current_iteration"/>'
        '<output external_port_id="-1" internal_layer_id="21" purpose="execution_condition"/></port_map>'
        '<back_edges><edge from-layer="20" to-layer="11"/></back_edges>'
    )
    layers = [parameter(10, "i", "", "i64"), parameter(11, "h"), parameter(12, "c", "", "boolean")]
    layers += [result(21, "go"), result(20, "out")]
    loop_body = network(layers, "11.0->20.0 12.0->21.0", tag="body")
    loop = layer(3, "loop", "Loop", "opset5", inputs=(0, 1, 2), outputs=(3,), extra=maps + loop_body)
    top = [parameter(0, "n", "", "i64"), parameter(1, "c", "", "boolean"), parameter(2), loop, result(4)]
    op = vars(read(tmp_path, network(top, "0.0->3.0 1.0->3.1 2.0->3.2 3.3->4.0")).nodes[3].op)
    sliced, condition = op["input_maps"]
    assert condition == InputMap(1, 2)
    assert sliced == InputMap(2, 1, axis=1, start=-1, end=0, stride=-1, part_size=2)
    assert (op["current_iteration"], op["execution_condition"]) == (0, 0)
    assert op["back_edges"] == (BackEdge(result=1, parameter=1),)


@pytest.mark.parametrize(
    ("element_type", "outside"),
    [("f16", ("f32", "f32")), ("u8", ("u8", "f32")), ("i64", ("i64", "i32")), ("f32", ("f32", "f32"))],
)
def test_version_10_interface(tmp_path: Path, element_type: str, outside: tuple[str, str]) -> None:
    xml = relay(element_type=element_type, names="t").replace('"11"', '"10"', 1)
    graph = read(tmp_path, xml)
    ports = graph.parameters[0].out_port(0), graph.results[0].out_port(0)
    assert tuple(p.type.dtype.value for p in ports) == outside
    assert "x" in graph.parameters[0].out_port(0).names
    assert "x" in graph.results[0].out_port(0).names


def test_outputs_of_version_10_have_the_names_of_layers(tmp_path: Path) -> None:
    layers = [parameter(), constant(1, "c", "i64", "", 0, 8), result(3), result(4)]
    layers.append(layer(2, "split", "Split", inputs=(0, 1), outputs=(2, 3), num_splits="2"))
    xml = network(layers, "0.0->2.0 1.0->2.1 2.2->3.0 2.3->4.0").replace("2,3", "2,4").replace('"11"', '"10"', 1)
    graph = read(tmp_path, xml, struct.pack("<q", 1))
    assert [r.out_port(0).names[-1] for r in graph.results] == ["split.0", "split.1"]


def test_other_files(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_bytes(b"a model")
    with pytest.raises(UnsupportedError, match=r"Caffe, PaddlePaddle, GGUF and folders .* can be read, got a text"):
        read_model(path)
    with pytest.raises(UsageError, match="there is no such file"):
        read_model(tmp_path / "none.xml")
