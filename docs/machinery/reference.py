"""The reference: every public name once, under the topic of the module that defines it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from inspect import isclass, isfunction
from pathlib import Path
from types import ModuleType

import tcalc as tc

#: Topics of the names of `tcalc`, and the modules that define them; the first that fits counts.
TOPICS: dict[str, tuple[str, ...]] = {
    "Variables and text": (
        "graph.variables", "languages.matrix.parse", "languages.index.parse",
        "languages.einsum.parse",
    ),
    "Expressions": ("graph.nodes",),
    "Derivatives": ("calculus.", "run.transforms"),
    "Numbers": ("run.", "app.", "support.limits"),
    "Compressed tensors": ("compression.", "structured."),
    "Formulas and source": ("languages.",),
    "Other forms": ("rules.",),
    "Loops": ("loops.",),
    "Minimising": ("minimise.",),
    "Functions of entries": (
        "ops.elementwise", "ops.entrywise", "ops.bessel", "ops.special", "ops.incomplete",
        "ops.declared", "ops.arithmetic",
    ),
    "Reductions, orders, statistics": (
        "ops.reductions", "ops.cumulative", "ops.statistics", "ops.ordering", "ops.differences",
        "ops.polynomials",
    ),
    "Products and norms": ("ops.einsum", "ops.products", "ops.matrix."),
    "Shapes, parts, joining": ("ops.",),
    "Errors": ("",),
}  # fmt: skip

#: Namespaces of other libraries' names: those that are not the other library's own.
NAMESPACES = {
    "autograd": (
        "tcalc.autograd", "tcalc.autograd.extend", "tcalc.autograd.optimizers",
        "tcalc.autograd.test_util", "tcalc.autograd.fixed_points",
    ),
    "scipy": (
        "tcalc.scipy.special", "tcalc.scipy.stats", "tcalc.scipy.linalg", "tcalc.scipy.signal",
        "tcalc.scipy.integrate",
    ),
}  # fmt: skip


def topic(thing: object) -> str:
    """The topic of a public name."""
    module = f"{getattr(thing, '__module__', '')}."
    for title, places in TOPICS.items():
        if any(module.startswith(f"tcalc.{place}".rstrip(".") + ".") for place in places):
            return title
        if any(module.startswith(f"tcalc.{place}") for place in places if place):
            return title
    raise ValueError(f"{thing!r} has no topic")


def public(module: ModuleType, within: str = "tcalc") -> dict[str, object]:
    """Functions and classes under names of a module, in alphabetical order."""
    return {
        name: thing
        for name in sorted(dir(module), key=str.lower)
        if not name.startswith("_")
        and (isfunction(thing := getattr(module, name)) or isclass(thing))
        and str(getattr(thing, "__module__", "")).startswith(within)
    }


def page(title: str, lines: Iterable[str]) -> str:
    return "\n".join([title, "=" * len(title), "", *lines, ""])


def section(title: str) -> list[str]:
    return ["", title, "-" * len(title), ""]


def entry(module: str, name: str, thing: object) -> Iterator[str]:
    """The directive of one name."""
    yield (
        f".. autofunction:: {module}.{name}"
        if not isclass(thing)
        else (f".. autoclass:: {module}.{name}")
    )
    if isclass(thing) and not issubclass(thing, Exception):
        yield from ("   :members:", "   :inherited-members:")
    yield ""


def names_of_tcalc() -> Iterator[tuple[str, list[str]]]:
    """File and lines of a page for every topic."""
    found: dict[str, list[str]] = {title: [] for title in TOPICS}
    for name, thing in public(tc).items():
        found[topic(thing)] += entry("tcalc", name, thing)
    yield from found.items()


def write_reference(source: Path) -> None:
    """Write the folder `reference` of the pages' folder."""
    folder = source / "reference"
    folder.mkdir(exist_ok=True)
    pages = {file_name(title): page(title, lines) for title, lines in names_of_tcalc()}
    lines = [line for name in tc.linalg.__all__ for line in
             entry("tcalc.linalg", name, getattr(tc.linalg, name))]  # fmt: skip
    pages["linalg"] = page("tcalc.linalg", lines)
    for title, modules in NAMESPACES.items():
        pages[title] = page(f"tcalc.{title}", [line for m in modules for line in namespace(m)])
    contents = [".. toctree::", "   :maxdepth: 1", "", *[f"   {name}" for name in pages]]
    head = ["Every public name, with parameters, results and errors.", ""]
    pages["index"] = page("Reference", [*head, *contents])
    for name, text in pages.items():
        file = folder / f"{name}.rst"
        if not file.exists() or file.read_text(encoding="utf-8") != text:  # pages are kept if equal
            file.write_text(text, encoding="utf-8")


def namespace(name: str) -> list[str]:
    """What a namespace of another library's names has of its own."""
    module = import_module(name)
    lines = section(name)
    lines += [(module.__doc__ or "").split("\n\nReads")[0].replace("`", "``"), ""]
    for short, thing in public(module, ".".join(name.split(".")[:2])).items():
        lines += entry(name, short, thing)
    return lines


def file_name(title: str) -> str:
    return title.lower().replace(",", "").replace(" ", "-")
