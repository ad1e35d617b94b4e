from openvino.tools.mo.front.extractor import FrontExtractorOp
from openvino.tools.mo.front.tf.extractors.utils import tf_dtype_extractor
from openvino.tools.mo.ops.op import Op


class SoftClipFrontExtractor(FrontExtractorOp):
    op = 'SoftClip'
    enabled = True

    @classmethod
    def extract(cls, node):
        attrs = {
            'limit': node.pb.attr['limit'].f,
            'centers': list(node.pb.attr['centers'].list.f),
            'mode': node.pb.attr['mode'].s.decode('utf-8'),
            'data_type': tf_dtype_extractor(node.pb.attr['T'].type),
        }
        Op.get_op_class_by_name(cls.op).update_node_stat(node, attrs)
        return cls.enabled
