"""Functions of arrays, maps and structs.

A column of lists is all elements one after the other, and where each row's begin. Nothing here
loops over rows: a function of elements runs over all elements of all rows, and what belongs to
which row is put together afterwards::

    tags     [red, tan]  NULL  [blue]        elements   red tan blue      of rows   0 0 2

    nested.py     this layout, for lists, maps and structs, in one form for all types of Arrow
    arrays.py     whole arrays: their size, a slice, their order, a text of all
    elements.py   one element, one value of a map, one field of a struct
    sets.py       arrays as sets: whether an element is there, what two of them share
    lambdas.py    functions that take a function, evaluated in a scope whose rows are the elements
    structs.py    structs and maps that a term builds, and rows that it compares
    ranks.py      numbers in Spark's order that stand for values, so that any two can be compared

A term reads fields and elements by name and place, and elements of types that differ from row to
row come in groups of one type (``model/events/derived/opened.py``).
"""
