"""Folders of Hugging Face with language models: config.json and *.safetensors, to a stateful graph of the opset."""
