"""Lowering: opset graph to loop nests and memory."""
