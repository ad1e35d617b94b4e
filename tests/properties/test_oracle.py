"""Random trials: the reference against OpenVINO, where it is right (docs/use/migrate/differences.md)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from aot.ir.types import Array
from tests.cases import Tolerance
from tests.properties import detecting, elementwise, gathering, mixing, moving, windowed
from tests.properties.drawing import Draw, Trial, random_draw
from tests.properties.oracle import model

ov = pytest.importorskip("openvino")

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore"),  # OpenVINO's own
]

NEAR = Tolerance("oracle", 1e-4, 1e-5)  # it computes f64 in f32
MAKERS = [
    elementwise.negation,
    elementwise.smooth,
    elementwise.activation,
    elementwise.prelu,
    elementwise.alike,
    gathering.gather_tree,
    gathering.bucketize,
    gathering.search,
    gathering.scatter_nd,
    moving.slices,
    moving.shape_of,
    moving.reorg,
    moving.patches,
    moving.columns,
    moving.eye,
    moving.identity,
    windowed.convolution,
    windowed.deformable,
    windowed.grid_sample,
    mixing.matmul,
    mixing.einsum,
    mixing.attention,
    mixing.recurrent,
    mixing.local_response,
    detecting.suppression,
    detecting.rotated,
    detecting.prior_box,
    detecting.prior_grid,
    detecting.proposals_of_image,
    detecting.generated,
    detecting.deformable_regions,
    detecting.detectron,
    detecting.multinomial,
]


def openvino(trial: Trial) -> list[Array]:
    """Return the results of OpenVINO's CPU plugin in f32."""
    xml, weights = model(trial)
    core = ov.Core()
    network = core.read_model(xml.encode(), np.frombuffer(weights or b"\0", np.uint8).tobytes())
    compiled = core.compile_model(network, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})
    request = compiled.create_infer_request()
    for k, (port, array) in enumerate(zip(compiled.inputs, trial.given, strict=True)):
        tensor = ov.Tensor(port.get_element_type(), ov.Shape(array.shape))
        tensor.data.view(array.dtype)[...] = array
        request.set_input_tensor(k, tensor)
    request.infer()
    return [np.array(request.get_output_tensor(k).data) for k in range(len(compiled.outputs))]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("maker", MAKERS, ids=lambda m: m.__name__)
def test_reference_gives_what_openvino_gives(maker: Callable[[Draw], Trial], seed: int) -> None:
    trial = maker(random_draw(seed))
    for found, expected in zip(openvino(trial), trial.expected(), strict=True):
        assert found.shape == expected.shape
        array = found.view(expected.dtype) if found.dtype.itemsize == expected.dtype.itemsize else found
        assert NEAR.allows(array, expected), str(trial)
