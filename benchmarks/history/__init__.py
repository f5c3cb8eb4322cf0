"""History: what subscriptions that look back cost, beside nested loops and a database."""
