"""Instructions that an inference executes, of ours and of other runtimes, under an emulator of Arm's processors.

    python -m benchmarks.instructions MODEL.onnx --root SYSROOT --packages SITE

No time is measured: a count says what a processor has to do, not how long it takes.
"""
