"""The experiments of seeds 000, 001, 003 and 004 again, and the libraries one may take instead."""
