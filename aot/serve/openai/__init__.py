"""OpenAI's API for language models: /v1/models, /v1/completions, /v1/chat/completions, with streaming."""
