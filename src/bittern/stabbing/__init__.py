"""One-attribute indexes: which intervals contain this value?"""
