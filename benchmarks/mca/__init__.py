"""Inner loops of networks by LLVM's model of processors (llvm-mca): cycles against the least for their arithmetic.

    python -m benchmarks.mca                      all layers, on Neoverse N1, V1 and V2
    python -m benchmarks.mca "int8" --cpu neoverse-v2
    python -m benchmarks.mca.networks             whole networks, from the blocks that an emulator counts

No machine of the kind is needed, and none was measured: a model knows units and latencies, but neither caches nor
memory.
"""
