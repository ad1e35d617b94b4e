"""The interfaces of other runtimes over compiled models: `aot.compat.onnxruntime`, `aot.compat.openvino`.

A program of theirs changes its import; an option without a meaning here is refused by a sentence, never ignored.
"""
