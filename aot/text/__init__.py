"""Text for language models: conversations, templates, grammars, and the loops around encoders."""
