import numpy as np

from openvino.tools.mo.front.common.partial_infer.utils import int64_array
from openvino.tools.mo.front.tf.graph_utils import create_op_node_with_second_input
from openvino.tools.mo.front.tf.replacement import FrontReplacementFromConfigFileGeneral
from openvino.tools.mo.graph.graph import Graph, Node
from openvino.tools.mo.ops.DetectionOutput import DetectionOutput
from openvino.tools.mo.ops.const import Const
from openvino.tools.mo.ops.reshape import Reshape
from openvino.tools.mo.ops.result import Result
from openvino.tools.mo.utils.error import Error


class SSDHead(FrontReplacementFromConfigFileGeneral):
    replacement_id = 'SSDHead'

    def run_after(self):
        from openvino.tools.mo.front.pass_separator import FrontStart
        return [FrontStart]

    def transform_graph(self, graph: Graph, replacement_descriptions):
        loc_name, conf_name = replacement_descriptions['loc'], replacement_descriptions['conf']
        nodes = [Node(graph, graph.get_node_id_by_name(name)) for name in (loc_name, conf_name)]
        flat = []
        for node in nodes:
            flat.append(create_op_node_with_second_input(graph, Reshape, int64_array([0, -1]),
                                                         dict(name=node.name + '/Flatten'), node))
        priors = Const(graph, {'value': np.array(replacement_descriptions['priors'], dtype=np.float32),
                               'name': 'priors'}).create_node()
        output = DetectionOutput(graph, dict(
            name='detections', num_classes=replacement_descriptions['num_classes'], normalized=1,
            code_type='caffe.PriorBoxParameter.CENTER_SIZE', variance_encoded_in_target=0, share_location=1,
            background_label_id=0, top_k=20, keep_top_k=20, nms_threshold=0.45, confidence_threshold=0.1)).create_node(
            [flat[0], flat[1], priors])
        for result in graph.get_op_nodes(op='Result'):
            graph.remove_node(result.id)
        Result(graph, {'name': 'do_result'}).create_node([output])
