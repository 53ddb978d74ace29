"""What an example hands back, and how its figures look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BLUE, ORANGE, GREEN, GREY = "#1f5fa8", "#d9772b", "#3a8f5c", "#888888"
STYLE = {
    "figure.dpi": 100,
    "savefig.dpi": 130,
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "tcalc",  # equal runs write equal files
}


@dataclass
class Table:
    """Rows of text under a header; the first column names the row."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass
class Figure:
    """A file beside the page, and the words under it."""

    file: str
    caption: str


@dataclass
class Found:
    """What a run of an example found.

    Attributes
    ----------
    facts : dict
        Numbers and flags by name, for those who check.
    formulas : list
        Pairs of a heading and a formula as tcalc prints it.
    notes : list
        Sentences with the run's own numbers.
    tables, figures : list
    """

    facts: dict[str, Any] = field(default_factory=dict)
    formulas: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)


def axes(rows: int, columns: int, width: float, height: float, **options: Any) -> Any:
    """A figure of that size in inches and its axes; no global state of pyplot is touched."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    with matplotlib.rc_context(STYLE):
        figure = Canvas(figsize=(width, height), layout="constrained")
        return figure, figure.subplots(rows, columns, **options)


def save(figure: Any, folder: Path, file: str) -> None:
    import matplotlib

    with matplotlib.rc_context(STYLE):
        keep = {"metadata": {"Date": None}} if file.endswith(".svg") else {}
        figure.savefig(folder / file, **keep)


def two_colours(low: str, high: str) -> Any:
    """A colour map for pictures of what is there and what is not."""
    from matplotlib.colors import ListedColormap

    return ListedColormap([low, high])


def size(count: float) -> str:
    """Bytes as people read them."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return (
                f"{count:.3g} {unit}" if count >= 1000 or unit != "bytes" else f"{count:.0f} {unit}"
            )
        count /= 1024
    return f"{count:.3g} TiB"
