"""Between this compiler's graph and Model Optimizer's: `to_mo.exported`, `from_mo.imported`."""
