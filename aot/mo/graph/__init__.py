"""Model Optimizer's graph: nodes with attributes, ports, connections, and data nodes after the front phase."""
