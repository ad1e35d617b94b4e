"""Middle passes: the graph becomes smaller and canonical, its meaning stays."""
