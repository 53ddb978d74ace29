"""Time against size for every contestant, one panel per problem and quantity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

Curves = dict[str, list[tuple[float, float]]]


def draw(document: dict[str, Any], out: Path) -> None:
    """Write a picture of the results of `run --json`."""
    picture(panels(document), "seconds", 3, out)


def factor(document: dict[str, Any], out: Path) -> None:
    """Write a picture of the results of `factor`, times divided by n^3."""
    picture(cubed(document), "seconds / n³", 2, out)


def picture(drawn: dict[str, Curves], unit: str, columns: int, out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    if not drawn:
        raise ValueError("nothing to draw: no result has a time")
    columns = min(columns, len(drawn))
    rows = -(-len(drawn) // columns)
    size = (5 * columns, 3.6 * rows)
    figure, grid = pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="tight")
    for axes, (title, curves) in zip(grid.flat, drawn.items(), strict=False):
        for label, points in curves.items():
            axes.loglog(*zip(*sorted(points), strict=True), marker="o", label=label)
        sizes = sorted({n for points in curves.values() for n, _ in points})
        axes.set_xticks(sizes, [f"{n:g}" for n in sizes], minor=False)
        axes.xaxis.set_minor_locator(pyplot.NullLocator())
        axes.set(title=title, xlabel="n", ylabel=unit)
        axes.grid(True, which="major", alpha=0.3)
        axes.legend(fontsize="small")
    for axes in grid.flat[len(drawn) :]:
        axes.set_visible(False)
    figure.savefig(out, dpi=120)
    pyplot.close(figure)


def panels(document: dict[str, Any]) -> dict[str, Curves]:
    """Title -> contestant -> (n, seconds), of the generated cases, whose label names n."""
    found: dict[str, Curves] = {}
    for result in document["results"]:
        if not result["case"].startswith("n="):
            continue
        threads = f", {result['threads']} threads" if result["threads"] > 1 else ""
        for row in result["rows"]:
            if row["seconds"] is not None:
                curves = found.setdefault(f"{result['problem']}: {row['quantity']}{threads}", {})
                point = (result["sizes"]["n"], row["seconds"])
                curves.setdefault(row["label"], []).append(point)
    return found


def cubed(document: dict[str, Any]) -> dict[str, Curves]:
    """Title -> contestant -> (n, seconds / n^3), forward and backward of each factorisation."""
    found: dict[str, Curves] = {}
    for result in document["results"]:
        n = result["sizes"]["n"]
        seconds = {(row["quantity"], row["label"]): row["seconds"] for row in result["rows"]}
        threads = f", {result['threads']} threads" if result["threads"] > 1 else ""
        for quantity, label in seconds:
            value, both = seconds.get(("value", label)), seconds.get(("both", label))
            if quantity != "value" or value is None or both is None:
                continue
            for part, taken in (("forward", value), ("backward", both - value)):
                curves = found.setdefault(f"{result['problem']}: {part}{threads}", {})
                curves.setdefault(label, []).append((n, max(taken, 1e-9) / n**3))
    return found
