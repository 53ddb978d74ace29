"""Small tables for notebooks: inline style that reads on light pages and on dark ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

#: Rows that are shown; of more the number is told.
MOST_ROWS = 100
LINE = "rgba(128, 128, 128, 0.4)"  #: of lines, on any background
CELL = "padding: 0.2em 0.8em; color: inherit; background: none"
#: The first column is words, the others are mostly numbers.
SIDES = ("left", "right")


def table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[object]], notes: Sequence[str] = ()
) -> str:
    """A table with a title above and notes below, as HTML; all text in it is escaped."""
    from html import escape  # with the names of all characters, which few need

    lines = [_row("td", row) for row in islice(rows, MOST_ROWS)]
    more = len(rows) - len(lines)
    below = [f"… and {more} more", *notes] if more > 0 else notes
    style = f"border-collapse: collapse; border-bottom: 1px solid {LINE}; color: inherit"
    return (
        f'<div style="color: inherit"><div>{escape(title)}</div><table style="{style}"><thead>'
        f"{_row('th', head)}</thead><tbody>{''.join(lines)}</tbody></table>"
        f"{''.join([f'<div>{escape(note)}</div>' for note in below])}</div>"
    )


def _row(tag: str, cells: Sequence[object]) -> str:
    from html import escape

    shown = [
        f'<{tag} style="{CELL}; text-align: {SIDES[k > 0]}; border-top: 1px solid {LINE}">'
        f"{escape(str(cell))}</{tag}>"
        for k, cell in enumerate(cells)
    ]
    return f"<tr>{''.join(shown)}</tr>"
