"""Decoder-only language models whose files hold tensors and sizes, but no graph: GGUF, and folders of Hugging Face."""
