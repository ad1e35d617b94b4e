"""The table of all rewrite rules, in the order of the page."""

from __future__ import annotations

from tests.rules.entries import activations, arithmetic, lowering, movement, quantization, weights

THEMES = {
    "Data movement": movement.ENTRIES,
    "Arithmetic": arithmetic.ENTRIES,
    "Activations and normalisation written out": activations.ENTRIES,
    "Weights, padding, pooling": weights.ENTRIES,
    "Levels of quantised networks": quantization.ENTRIES,
    "Operations written out": lowering.ENTRIES,
}
ENTRIES = tuple(entry for entries in THEMES.values() for entry in entries)
