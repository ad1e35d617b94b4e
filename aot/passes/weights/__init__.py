"""Weights in fewer bits: `--weights` of `aot compile` and of `aot quantize`."""
