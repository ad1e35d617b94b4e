"""For programs that have PyTorch: `aot.export`, and the backend `aot` of `torch.compile`."""
