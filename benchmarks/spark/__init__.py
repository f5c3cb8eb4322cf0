"""Bittern on Spark measured: the match stage, what users write today, writing, scaling."""
