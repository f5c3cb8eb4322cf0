"""Functions of dates, timestamps and intervals.

Time is whole numbers: a date is days since 1970, a timestamp microseconds, both in the proleptic
Gregorian calendar and in UTC. Functions take these out of their columns (``moments.py``), compute
in NumPy and put them back; a constant is a single number, which NumPy spreads over the rows::

    moments.py            numbers out of columns of times, and back
    calendar.py           days since 1970 and year, month, day
    zones.py              what a clock shows somewhere, and when it shows it

    times.py              fields (year, week, ...), truncation, months and days between
    shifting.py           + and - of dates, timestamps and intervals
    intervals.py          intervals: months, days and time apart; their parts and arithmetic
    interval_literals.py  how intervals are written
    texts.py              to_date, date_format, make_date, unix_timestamp, ...: texts and numbers
    patterns.py           the patterns of these, such as ``dd.MM.yyyy``

Reading a string without a pattern is a cast (``terms/casts/from_text_times.py``).
"""
