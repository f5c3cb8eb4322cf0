"""The experiments of seeds 000, 001 and 004 again, and the libraries one would take instead."""
