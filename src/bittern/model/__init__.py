"""Schema, events, rank space and matches: what flows through the engine."""
