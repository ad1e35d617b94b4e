"""The interfaces of other runtimes over compiled models: `aot.compat.onnxruntime`, `aot.compat.openvino`.

A program of theirs changes its import; what has no meaning here is refused by a sentence, never ignored silently.
"""
