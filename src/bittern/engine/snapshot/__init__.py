"""Snapshots: named arrays in a folder, memory-mapped, safe to write.

``folder.py`` writes, opens and verifies them; ``manifest.py`` is the JSON object that names and
sums all of a snapshot. docs/file_format.md describes both.
"""
