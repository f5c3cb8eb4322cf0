"""Functions that tests call in Spark sessions, here or in a process of their own."""
