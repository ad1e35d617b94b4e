"""Constants of TensorFlow files, from the message in `node.pb`."""

from openvino.tools.mo.front.extractor import FrontExtractorOp
from openvino.tools.mo.front.tf.extractors.utils import tf_dtype_extractor, tf_tensor_content, tf_tensor_shape
from openvino.tools.mo.graph.graph import Node
from openvino.tools.mo.ops.const import Const


class ConstExtractor(FrontExtractorOp):
    """Reads the tensor."""

    op = "Const"
    enabled = True

    @classmethod
    def extract(cls, node: Node) -> bool:
        tensor = node.pb.attr["value"].tensor
        shape = tf_tensor_shape(tensor.tensor_shape)
        value = tf_tensor_content(tensor.dtype, shape, tensor)
        Const.update_node_stat(node, {"shape": shape, "value": value, "data_type": tf_dtype_extractor(tensor.dtype)})
        return cls.enabled
