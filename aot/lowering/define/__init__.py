"""Opset graph to steps: the definitions of each node, bodies of control flow, variables."""
