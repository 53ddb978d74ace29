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


def cluster(result: dict[str, Any], out: Path) -> None:
    """Write a picture of the results of `cluster`: times by the number of blocks, and the model."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    found = result["overhead"]
    if not found:
        raise ValueError("nothing to draw: no numbers of partitions were measured")
    counts = [n for n, _ in found["alone"]]
    base, each = found["base"], found["each"]
    model = [base + each * n for n in counts]
    figure, axes = pyplot.subplots(figsize=(6.4, 4.4), layout="tight")
    axes.loglog(*zip(*found["alone"], strict=True), "o", label="a task for each block, measured")
    label = f"model: {1e3 * base:.0f} ms + {1e3 * each:.2g} ms × blocks"
    axes.loglog(counts, model, "--", color="C0", label=label)
    axes.loglog(*zip(*found["shared"], strict=True), "s-", label="blocks share tasks, measured")
    axes.set_xticks(counts, [f"{n:,}" for n in counts], minor=False)
    axes.xaxis.set_minor_locator(pyplot.NullLocator())
    title = f"value and gradient, {result['rows']} rows a block, 2 processes"
    axes.set(title=title, xlabel="blocks", ylabel="seconds an evaluation")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(fontsize="small")
    figure.savefig(out, dpi=120)
    pyplot.close(figure)


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
