"""PB+tree: what the predicate index on disk costs, beside its rivals and two databases."""
