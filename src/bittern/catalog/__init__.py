"""The durable catalog: subscriptions in SQLite or PostgreSQL, every change a version."""
