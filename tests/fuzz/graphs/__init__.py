"""Random graphs, of the opset and of ONNX, and pairs of graphs that compute the same."""
