"""Values as tables of HTML, which notebooks show."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table; None is an empty cell."""

    def row(cells: Sequence[Any], tag: str) -> str:
        texts = ["" if cell is None else html.escape(str(cell)) for cell in cells]
        return "<tr>" + "".join(f"<{tag}>{text}</{tag}>" for text in texts) + "</tr>"

    return "<table>" + row(head, "th") + "".join(row(cells, "td") for cells in rows) + "</table>"


def titled(title: str, text: str) -> str:
    """A text with its lines as they are, below a title."""
    return f"<p>{html.escape(title)}</p><pre>{html.escape(text.rstrip())}</pre>"


def duration(seconds: float | None) -> str | None:
    """A time with its unit, to four digits.

    Examples:
        >>> duration(17.77e-6), duration(1.228e-3), duration(2.5), duration(None)
        ('17.77 us', '1.228 ms', '2.5 s', None)
    """
    if seconds is None:
        return None
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"
