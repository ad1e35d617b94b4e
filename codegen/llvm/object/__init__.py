"""Objects and libraries: compiling in parts, linking, ELF."""
