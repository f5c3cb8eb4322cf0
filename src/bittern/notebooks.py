"""What a notebook shows of an object: small tables of HTML, in which every text is escaped.

Notebooks ask objects for ``_repr_html_``. Colours are left to the notebook's own style, so that
pages are readable whether they are light or dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

#: Colour and sign of what was true, false and unknown; readable on white and on black.
_SIGNS = {True: ("#2a8f4f", "✓"), False: ("#d1433f", "✗"), None: ("#a07800", "?")}
#: A cell shows so many characters.
_WIDTH = 200


def table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table of rows below headings; numbers stand at the right."""
    head = "".join(f"<th>{escape(each)}</th>" for each in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def facts(caption: str, known: Mapping[str, Any]) -> str:
    """A table with a row for each name and its value; what is nested is left out."""
    plain = [(name, value) for name, value in known.items() if not isinstance(value, Mapping)]
    return table(caption, ("", ""), plain)


def tree(
    caption: str, rows: Iterable[tuple[int, bool | None, str, str]], remarks: Iterable[str]
) -> str:
    """A tree, a line for each node: its depth, whether it held, its text, and what is said of it.

    A sign says whether it held, too: not everybody sees the difference between green and red.
    """
    lines = [f"<div><strong>{escape(caption)}</strong></div>"]
    for depth, truth, text, said in rows:
        colour, sign = _SIGNS[truth]
        lines.append(
            f'<div style="padding-left: {1.5 * (depth + 1)}em"><span style="color: {colour}">'
            f"{sign}</span> <code>{escape(text)}</code>: {escape(said)}</div>"
        )
    lines += [f'<div style="padding-left: 1.5em">{escape(each)}</div>' for each in remarks]
    return "".join(lines)


def _cell(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f'<td style="text-align: right">{value:,}</td>'
    text = str(value)
    shown = text if len(text) <= _WIDTH else f"{text[:_WIDTH]}..."
    return f'<td style="text-align: left">{escape(shown)}</td>'
