"""Text for language models: tokenizers of model files, by the package tokenizers."""
