"""GGUF: files of language models, whose architecture the metadata name, to a stateful graph of the opset."""
