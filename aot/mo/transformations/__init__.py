"""Transformations of Model Optimizer that this project has written: a file holds those of one theme.

    @transformation("middle.L2NormFusing")
    class L2NormToNorm: ...

The table of transformations (`aot.mo.transforms`) says of which kind they are and where they run; the classes here do
the work. One runs in a compilation if an extension names it in `run_after`, and whenever an extension calls it. Why
others have no code: `aot.mo.refused`.

Wings: graphs, layout, products, quantization, resampling, slices; `nodes` has their common functions.
"""
