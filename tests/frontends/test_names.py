"""Names of networks: their own, or that of the file where the format's own says nothing."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

from aot.frontends import read_model

SAY_NOTHING = ("main_graph", "torch-jit-export", "torch_jit", "main", "graph", "", " ", "tf2onnx", "7")


def onnx_file(path: Path, name: str) -> Path:
    x, y = (make_tensor_value_info(one, onnx.TensorProto.FLOAT, [4]) for one in "xy")
    made = make_graph([make_node("Relu", ["x"], ["y"])], name, [x], [y])
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(make_model(made, opset_imports=[make_opsetid("", 17)], ir_version=8).SerializeToString())
    return path


def ir_file(path: Path, name: str) -> Path:
    port = '<port id="0" precision="FP32"><dim>4</dim></port>'
    path.write_text(
        f'<net name="{name}" version="11"><layers>'
        '<layer id="0" name="x" type="Parameter" version="opset1"><data shape="4" element_type="f32"/>'
        f"<output>{port}</output></layer>"
        f'<layer id="1" name="y" type="Result" version="opset1"><input>{port}</input></layer>'
        '</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>'
    )
    path.with_suffix(".bin").write_bytes(b"")
    return path


@pytest.mark.parametrize("name", SAY_NOTHING)
def test_a_name_that_says_nothing_is_replaced_by_the_files(name: str, tmp_path: Path) -> None:
    for file in ("letters.onnx", "letters.onnx.pb"):
        assert read_model(onnx_file(tmp_path / file, name)).name == "letters"
    assert read_model(ir_file(tmp_path / "figures.xml", name)).name == "figures"


@pytest.mark.parametrize("name", ["Model0", "torch_jit", "TensorFlow_Frontend_IR"])
def test_names_of_converters_to_ir_say_nothing(name: str, tmp_path: Path) -> None:
    assert read_model(ir_file(tmp_path / "figures.xml", name)).name == "figures"


@pytest.mark.parametrize("name", ["resnet50", "main_net", "graph of letters", "jitter", "model-b"])
def test_other_names_stay(name: str, tmp_path: Path) -> None:
    assert read_model(onnx_file(tmp_path / "letters.onnx", name)).name == name
    assert read_model(ir_file(tmp_path / "letters.xml", name)).name == name
