"""Tokenizers of model files: from `tokenizer.json`, by the package tokenizers, or from the metadata of GGUF."""
