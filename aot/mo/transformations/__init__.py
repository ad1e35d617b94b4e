"""Transformations of Model Optimizer that this project has written: a file holds those of one theme.

    @transformation("middle.L2NormFusing")
    class L2NormToNorm: ...

The table of transformations (`aot.mo.transforms`) says of which kind they are and where they run; the classes here do
the work. One runs in a compilation before an extension that its place precedes, and whenever one calls it. Why
others have no code: `aot.mo.refused`.

Wings: graphs, layout, products, quantization, resampling, slices; `nodes` has their common functions.
"""
