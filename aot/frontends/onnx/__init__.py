"""ONNX: `.onnx` to a graph of foreign operations, and the pass that turns them into operations of the opset."""
