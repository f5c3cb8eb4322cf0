"""Text to syntax tree to normal form, and back to text."""
