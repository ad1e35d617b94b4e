"""Groups of commands that take an option, and reasons why one changes no code."""

from __future__ import annotations

COMPILE = ("compile",)
TEXTS = (*COMPILE, "dump")
CODE = (*TEXTS, "compare", "report")
READ = (*CODE, "rewrite", "convert", "check")
GRAPH = (*READ, "provenance")
MODEL = (*GRAPH, "quantize")
INTERFACE = (*TEXTS, "convert", "compare", "quantize")
LIMITED = (*COMPILE, "convert", "check", "quantize")
AGAIN = ("provenance", "verify")  # commands that compile a library's model again

LOOKS = "it shows or keeps what is made, and changes nothing"
LIMITS = "a compilation beyond a limit ends; others do not see it"
