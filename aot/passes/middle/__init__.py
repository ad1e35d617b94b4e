"""Middle passes: the graph becomes smaller and canonical without changing its meaning."""
