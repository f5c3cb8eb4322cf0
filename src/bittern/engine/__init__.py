"""Kernels, snapshots, matchers and live changes."""
