"""Back passes: the graph becomes what lowering expects."""
