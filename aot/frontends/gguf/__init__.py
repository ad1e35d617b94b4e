"""GGUF: files of language models become a stateful graph of the opset. Metadata name the architecture."""
