"""From the items of a file to a graph: functions, frames, variables and tables are resolved."""
