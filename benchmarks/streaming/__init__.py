"""Streams: how much a pipeline bears, how late a match is, how soon a subscription counts."""
