"""Tables of cases of ONNX's operations: a module for each family, with `CASES`."""
