"""Folders of Hugging Face."""
