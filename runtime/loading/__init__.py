"""From a file to functions in memory: ELF, digests, the manifest, mapping, external weights."""
