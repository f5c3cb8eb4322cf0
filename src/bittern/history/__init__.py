"""Documents seen before: join predicates over them, and what can be told before an event comes."""
