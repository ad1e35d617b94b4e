"""One inference: its tensors, memory, state and threads."""
