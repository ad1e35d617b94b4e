"""Formats of objects and libraries (ELF, Mach-O, PE, WebAssembly): written, changed and linked."""
