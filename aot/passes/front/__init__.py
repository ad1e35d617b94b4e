"""Front passes: foreign operations become operations of the opset."""
