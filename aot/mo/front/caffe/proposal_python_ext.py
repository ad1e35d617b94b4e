"""Extractors of the Python layers that make proposals of boxes."""

from __future__ import annotations

from typing import Any

from aot.frontends.caffe.detection.boxes import ANCHORS, PROPOSALS
from aot.mo.front.extractor import CaffePythonFrontExtractorOp
from aot.mo.graph.graph import Node
from aot.mo.ops.registered import REGISTERED


class ProposalPythonFrontExtractor(CaffePythonFrontExtractorOp):
    """Sets the attributes of the layer of py-faster-rcnn."""

    op = "rpn.proposal_layer.ProposalLayer"
    enabled = True

    @staticmethod
    def extract_proposal_params(node: Node, defaults: dict[str, Any]) -> None:
        """Make a node a Proposal with the parameters of its layer, and `defaults` for the others."""
        attributes = CaffePythonFrontExtractorOp.get_attrs(node.pb)
        for several, one in (("ratios", "ratio"), ("scales", "scale")):
            if several in attributes:
                attributes[one] = attributes.pop(several)
        cls = REGISTERED["Proposal"]
        CaffePythonFrontExtractorOp.check_param(cls, defaults | attributes)
        cls.update_node_stat(node, defaults | attributes)

    @classmethod
    def extract(cls, node: Node) -> bool:
        lists = {name: list(ANCHORS[name]) for name in ("ratio", "scale")}
        ProposalPythonFrontExtractor.extract_proposal_params(node, {**ANCHORS, **lists, **PROPOSALS[cls.op]})
        return cls.enabled


class SSHProposalPythonFrontExtractor(CaffePythonFrontExtractorOp):
    """Sets the attributes of the layer of SSH."""

    op = "SSH.layers.proposal_layer.ProposalLayer"
    enabled = True
    extract = ProposalPythonFrontExtractor.__dict__["extract"]
