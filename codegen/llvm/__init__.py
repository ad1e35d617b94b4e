"""LLVM: emission, objects, linking, JIT."""
