"""Tasks: data, loss, metrics and head of each experiment."""
