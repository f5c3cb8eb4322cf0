"""Functions of strings and of bytes.

A column of strings is one buffer of bytes, and where each value begins in it. Functions work on the
whole buffer at once, with Arrow or NumPy; where neither has Spark's meaning (case mapping beyond
ASCII, Soundex), Python is called once for each distinct value. Characters are code points, and an
argument that is no string is cast to one::

    texts.py       what all of them are made of: arguments as text, characters, slices
    strings.py     case, trimming, joining, replacing, padding; lengths
    positions.py   parts of strings, and where they are: substr, split_part, instr, ...
    patterns.py    LIKE, and functions of regular expressions
    encodings.py   codes, hex, base64, Soundex, and how far two strings are apart
    hashes.py      md5, sha2, crc32 and check digits

What can make a value larger than its arguments counts against ``terms/limits.py``. The patterns of
LIKE and RLIKE mean the same to every room, so what they mean is in ``terms/pattern_texts.py``.
"""
