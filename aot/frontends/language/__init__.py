"""Decoder-only language models from files with tensors and sizes, but no graph: GGUF, and folders of Hugging Face."""
