"""How much of Model Optimizer's own code runs under our import names."""
