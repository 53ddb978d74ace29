"""Pictures of results: time against size in panels, and dots of many problems on one axis.

Drawn on a light panel of their own, so that pages of any colour may show them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .report import brief

Points = list[tuple[float, float]]
Curves = dict[str, Points]

#: Families of contestants by the first word of a label, and their colours.
COLOURS = {
    "tcalc": "#1d5fbf",
    "hand": "#555555",
    "jax": "#d9730d",
    "torch": "#b8232f",
    "autograd": "#2a8a4a",
    "asdex": "#7b3fa0",
    "gradbench": "#8a6d14",
}
OTHERS = ("#1d5fbf", "#d9730d", "#2a8a4a", "#b8232f", "#7b3fa0", "#555555", "#8a6d14")
MARKS = (("o", "-"), ("s", "--"), ("^", ":"), ("D", "-."), ("v", "--"))
#: Ours, in the order in which they are what others are compared with.
OURS = ("tcalc auto", "tcalc", "tcalc c")


@dataclass
class Panel:
    """Curves, and contestants that came to an end: (n, contestant, why)."""

    curves: Curves = field(default_factory=dict)
    limits: list[tuple[float, str, str]] = field(default_factory=list)


def draw(document: dict[str, Any], out: Path) -> None:
    """Write a picture of the results of `run --json`."""
    picture(panels(document), "seconds", 3, out)


def factor(document: dict[str, Any], out: Path) -> None:
    """Write a picture of the results of `factor`, times divided by n^3."""
    picture(cubed(document), "seconds / n³", 2, out)


def cluster(result: dict[str, Any], out: Path) -> None:
    """Write a picture of the results of `cluster`: times by the number of blocks, and the model."""
    found = result["overhead"]
    if not found:
        raise ValueError("nothing to draw: no numbers of partitions were measured")
    base, each = found["base"], found["each"]
    model = [(n, base + each * n) for n, _ in found["alone"]]
    curves = {
        "a task for each block, measured": found["alone"],
        f"model: {1e3 * base:.0f} ms + {1e3 * each:.2g} ms × blocks": model,
        "blocks share tasks, measured": found["shared"],
    }
    title = f"value and gradient, {result['rows']} rows a block, 2 processes"
    picture({title: Panel(curves)}, "seconds an evaluation", 1, out, across="blocks")


def picture(
    drawn: Mapping[str, Panel],
    unit: str,
    columns: int,
    out: Path,
    across: str = "n",
    ratios: bool = False,
) -> None:
    """One panel beside the other; below each, with `ratios`, times by those of ours."""
    pyplot = opened()
    drawn = {title: panel for title, panel in drawn.items() if panel.curves}
    if not drawn:
        raise ValueError("nothing to draw: no result has a time")
    columns = min(columns, len(drawn))
    rows = -(-len(drawn) // columns)
    heights = [3.0, 1.5] if ratios else [3.0]
    size = (4.2 * columns, (sum(heights) + 0.5) * rows + 0.5)
    figure, grid = pyplot.subplots(
        rows * len(heights), columns, figsize=size, squeeze=False, layout="constrained",
        height_ratios=heights * rows,
    )  # fmt: skip
    styles = styled(panel.curves for panel in drawn.values())
    for place, (title, panel) in enumerate(drawn.items()):
        row, column = divmod(place, columns)
        axes = grid[len(heights) * row, column]
        curves(axes, panel.curves, styles)
        ends(axes, panel.limits, styles)
        axes.set_title(title, fontsize="medium")
        axes.set_ylabel(unit)
        if ratios:
            axes = grid[len(heights) * row + 1, column]
            if compared := by_ours(panel.curves):
                curves(axes, compared, styles)
                axes.axhline(1.0, color="black", linewidth=0.8)
            axes.set_ylabel("÷ tcalc")
        axes.set_xlabel(across)
    for axes in grid.flat:
        axes.set_visible(axes.has_data())
        decades(axes.yaxis, *axes.get_ylim())
    saved(figure, styles, out, min(len(styles), 3 * columns))


def dots(
    rows: Mapping[str, Mapping[str, float]], unit: str, out: Path, line: float | None = None
) -> None:
    """A line of dots for every name, on one logarithmic axis; `line` is where both are equal."""
    pyplot = opened()
    if not rows:
        raise ValueError("nothing to draw: no result has a number")
    figure, axes = pyplot.subplots(figsize=(8.4, 0.21 * len(rows) + 1.4), layout="constrained")
    styles = styled([dict.fromkeys(label for values in rows.values() for label in values)])
    for label, (colour, mark, _) in styles.items():
        found = [(v[label], k) for k, v in enumerate(rows.values()) if label in v]
        axes.plot(*zip(*found, strict=True), mark, color=colour, label=label, ms=5, alpha=0.8)
    if line is not None:
        axes.axvline(line, color="black", linewidth=0.8)
    axes.set_xscale("log")
    decades(axes.xaxis, *axes.get_xlim())
    axes.set_yticks(range(len(rows)), list(rows), fontsize="small")
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel(unit)
    axes.grid(True, which="major", alpha=0.3)
    alone = {label: (colour, mark, "none") for label, (colour, mark, _) in styles.items()}
    saved(figure, alone, out, min(len(styles), 5))


def opened() -> Any:
    """matplotlib without a display, texts as texts, the same bytes for the same numbers."""
    import matplotlib

    matplotlib.use("Agg")
    fonts = ["DejaVu Sans", "Verdana", "Helvetica"]
    matplotlib.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "tcalc", "font.sans-serif": fonts}
    )
    from matplotlib import pyplot

    return pyplot


Styles = dict[str, tuple[str, str, str]]


def styled(drawn: Iterable[Mapping[str, Any]]) -> Styles:
    """Colour, mark and line of every label: a family has one colour, what has none its own."""
    labels = list(dict.fromkeys(label for curves in drawn for label in curves))
    found: Styles = {}
    of_family: dict[str, int] = {}
    for place, label in enumerate(sorted(labels, key=rank)):
        family = family_of(label)
        member = of_family[family] = of_family.get(family, -1) + 1
        colour = COLOURS[family] if family else OTHERS[place % len(OTHERS)]
        found[label] = (colour, *MARKS[member % len(MARKS)])
    return found


def family_of(label: str) -> str:
    """The first word of a label, where it is a family's; otherwise ""."""
    word = label.replace(",", " ").split()[0]
    return word if word in COLOURS else ""


def rank(label: str) -> int:
    """Ours first, then families in their order; everything else stays as it came."""
    if label in OURS:
        return OURS.index(label)
    return len(OURS) + list(COLOURS).index(family_of(label)) if family_of(label) else 0


def curves(axes: Any, drawn: Curves, styles: Styles) -> None:
    from matplotlib.ticker import NullLocator

    for label, (colour, mark, line) in styles.items():
        if label in drawn:
            points = zip(*sorted(drawn[label]), strict=True)
            axes.plot(*points, line, marker=mark, color=colour, ms=4, linewidth=1.4)
    if not drawn:
        return
    axes.set_xscale("log")
    axes.set_yscale("log")
    sizes = sorted({n for points in drawn.values() for n, _ in points})
    axes.set_xticks(sizes, [f"{n:,g}" for n in sizes], minor=False)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(True, which="major", alpha=0.3)


def decades(axis: Any, low: float, high: float) -> None:
    """Plain numbers at powers of ten, and between them where there are few."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1.0,) if high > 100 * low else (1.0, 2.0, 5.0)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:g}")


def ends(axes: Any, limits: Sequence[tuple[float, str, str]], styles: Styles) -> None:
    """A cross and a word above the size at which a contestant came to its end."""
    if not limits:
        return
    low, high = axes.get_ylim()
    room = (high / low) ** (0.1 + 0.09 * len(limits))
    for place, (n, label, why) in enumerate(sorted(limits)):
        colour = styles[label][0] if label in styles else "black"
        height = high * room ** ((place + 0.5) / len(limits))
        axes.plot([n], [height], "x", color=colour, ms=6, mew=1.8)
        axes.annotate(
            f"{label}: {why}", (n, height), (-6, 0), textcoords="offset points", color=colour,
            fontsize=7, ha="right", va="center",
        )  # fmt: skip
    axes.set_ylim(low, high * room)
    sizes = sorted({*axes.get_xticks(), *[n for n, _, _ in limits]})
    axes.set_xticks(sizes, [f"{n:,g}" for n in sizes], minor=False)


def by_ours(drawn: Curves) -> Curves:
    """Times by those of ours at the same size, without ours."""
    ours = next((dict(drawn[label]) for label in OURS if label in drawn), {})
    found = {
        label: [(n, taken / ours[n]) for n, taken in points if n in ours]
        for label, points in drawn.items()
        if not label.startswith("tcalc")
    }
    return {label: points for label, points in found.items() if points}


def saved(figure: Any, styles: Styles, out: Path, columns: int) -> None:
    """Write it with one legend below all panels."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=c, marker=m, linestyle=s) for c, m, s in styles.values()]
    for count in range(columns, 0, -1):
        legend = figure.legend(
            handles, list(styles), loc="outside lower center", ncols=count, fontsize="small",
            frameon=False,
        )  # fmt: skip
        if count == 1 or legend.get_window_extent().width <= figure.bbox.width:
            break
        legend.remove()  # it would be cut
    vector = out.suffix == ".svg"
    figure.savefig(out, dpi=120, facecolor="white", metadata={"Date": None} if vector else None)
    opened().close(figure)
    if vector:
        out.write_text(compact(out.read_text(encoding="utf-8")), encoding="utf-8")


def compact(text: str) -> str:
    """The same drawing in half the bytes: no comments or names, hundredths of a point."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r'<g id="\w+">', "<g>", text)
    text = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0]), text)
    return re.sub(r"\s*\n\s*", "\n", text)


def panels(document: dict[str, Any]) -> dict[str, Panel]:
    """Title -> (n, seconds) by contestant, of the generated cases, which have an n."""
    found: dict[str, Panel] = {}
    for result in document["results"]:
        if "n" not in result["sizes"] or not result["case"].startswith("n="):
            continue
        for row in result["rows"]:
            title = f"{result['problem']}: {row['quantity']}{threads(result)}"
            panel, n = found.setdefault(title, Panel()), result["sizes"]["n"]
            if row["seconds"] is not None:
                panel.curves.setdefault(row["label"], []).append((n, row["seconds"]))
            elif not row["refused"].startswith("not tried"):
                panel.limits.append((n, row["label"], brief(row["refused"])))
    return found


def cubed(document: dict[str, Any]) -> dict[str, Panel]:
    """Title -> (n, seconds / n^3) by contestant, forward and backward of each factorisation."""
    found: dict[str, Panel] = {}
    for result in document["results"]:
        n = result["sizes"]["n"]
        seconds = {(row["quantity"], row["label"]): row["seconds"] for row in result["rows"]}
        for quantity, label in seconds:
            value, both = seconds.get(("value", label)), seconds.get(("both", label))
            if quantity != "value" or value is None or both is None:
                continue
            for part, taken in (("forward", value), ("backward", both - value)):
                panel = found.setdefault(f"{result['problem']}: {part}{threads(result)}", Panel())
                if taken > 0:
                    panel.curves.setdefault(label, []).append((n, taken / n**3))
    return found


def threads(result: dict[str, Any]) -> str:
    return f", {result['threads']} threads" if result["threads"] > 1 else ""
