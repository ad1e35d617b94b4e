"""Generates text with stateful language models: choice of tokens, and the loop that feeds them back."""
