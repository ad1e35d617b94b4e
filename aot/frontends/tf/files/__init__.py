"""TensorFlow's files: messages, checkpoints, signatures, tensors."""
