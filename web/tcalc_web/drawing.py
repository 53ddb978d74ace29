"""A picture of an expression's graph: by Graphviz where that is installed, else by layers."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

_LINE, _CHARACTER, _GAP, _ROW = 15, 7, 24, 40
#: A string of the language, with its escapes.
_TEXT = r'"((?:[^"\\]|\\.)*)"'
_NODE = re.compile(rf"^  (\w+) \[label={_TEXT}, shape=(\w+)(?:.*?fillcolor={_TEXT})?")
_EDGE = re.compile(rf"^  (\w+) -> (\w+)(?: \[label={_TEXT}\])?")
_SVG = re.compile(r"<svg.*</svg>", re.DOTALL)
#: Where the graph is too large to be looked at.
MAX_NODES = 200


class _Node(NamedTuple):
    lines: list[str]
    shape: str
    fill: str

    @property
    def width(self) -> int:
        return _CHARACTER * max(map(len, self.lines), default=0) + 16

    @property
    def height(self) -> int:
        return _LINE * len(self.lines) + 10


def picture(dot: str, seconds: float) -> str:
    """SVG of a graph that `tcalc.to_dot` has written.

    Parameters
    ----------
    dot : str
    seconds : float
        What Graphviz may take before the layers are drawn instead.

    Returns
    -------
    str
        Empty where the graph is too large to be looked at.
    """
    nodes, edges = _read(dot)
    if len(nodes) > MAX_NODES:
        return ""
    program = shutil.which("dot")
    if program is not None:
        try:
            done = subprocess.run(
                [program, "-Tsvg"], input=dot, capture_output=True, check=True, encoding="utf-8",
                timeout=seconds,
            )  # fmt: skip
            found = _SVG.search(done.stdout)
            if found is not None:
                return found.group()
        except (OSError, subprocess.SubprocessError):
            pass  # the layers are there in any case
    return _drawn(nodes, edges)


def _read(dot: str) -> tuple[dict[str, _Node], list[tuple[str, str, str]]]:
    nodes, edges = {}, []
    for line in dot.splitlines():
        if match := _EDGE.match(line):
            edges.append((match[1], match[2], _unquoted(match[3] or "")))
        elif match := _NODE.match(line):
            lines = [_unquoted(part) for part in re.split(r"\\[nlr]", match[2])]
            nodes[match[1]] = _Node(lines, match[3], match[4] or "none")
    return nodes, [edge for edge in edges if edge[0] in nodes and edge[1] in nodes]


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _depths(nodes: Mapping[str, _Node], edges: Sequence[tuple[str, str, str]]) -> dict[str, int]:
    """Layers: below the operands, and leaves right above what reads them first."""
    operands: dict[str, list[str]] = {name: [] for name in nodes}
    readers: dict[str, list[str]] = {name: [] for name in nodes}
    for start, end, _ in edges:
        operands[end].append(start)
        readers[start].append(end)
    depth: dict[str, int] = {}
    for name in nodes:  # operands come before what is made of them
        depth[name] = 1 + max((depth.get(a, -1) for a in operands[name]), default=-1)
    leaves = [name for name in nodes if not operands[name] and readers[name]]
    return depth | {name: min(depth[r] for r in readers[name]) - 1 for name in leaves}


def _drawn(nodes: Mapping[str, _Node], edges: Sequence[tuple[str, str, str]]) -> str:
    """Layer below layer, in the order of what each node reads; long lines have a place in each."""
    depth = _depths(nodes, edges)
    placed = dict(nodes)
    above: dict[str, list[str]] = {name: [] for name in nodes}
    lines = []
    for number, (start, end, label) in enumerate(edges):
        way = [start, *[f"{number}.{k}" for k in range(depth[start] + 1, depth[end])], end]
        for k, (upper, lower) in enumerate(pairwise(way), depth[start] + 1):
            placed.setdefault(lower, _Node([], "bend", "none"))
            depth.setdefault(lower, k)
            above.setdefault(lower, []).append(upper)
        lines.append((way, label))
    layers: list[list[str]] = [[] for _ in range(1 + max(depth.values(), default=-1))]
    for name in placed:
        layers[depth[name]].append(name)
    order: dict[str, float] = {}
    for layer in layers:
        mean = {n: sum(order[a] for a in above[n]) / max(1, len(above[n])) for n in layer}
        layer.sort(key=lambda n: mean[n])
        order |= {name: (k + 1) / (len(layer) + 1) for k, name in enumerate(layer)}

    widths = [sum(placed[n].width + _GAP for n in layer) for layer in layers]
    width, y = max(widths, default=0) + _GAP, _GAP
    middle: dict[str, tuple[float, float]] = {}
    for layer, taken in zip(layers, widths, strict=True):
        x = (width - taken) / 2 + _GAP / 2
        height = max(placed[n].height for n in layer)
        for name in layer:
            middle[name] = (x + placed[name].width / 2, y + height / 2)
            x += placed[name].width + _GAP
        y += height + _ROW
    parts = []
    for way, label in lines:
        points = [middle[name] for name in way]
        parts.append(f'<polyline points="{_points(points)}" fill="none" stroke="#808080"/>')
        (x1, y1), (x2, y2) = points[-2:]
        parts.append(_words(label, (x1 + x2) / 2 + 4, (y1 + y2) / 2, "#808080", "start"))
    for name, node in nodes.items():
        parts += _box(node, *middle[name])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {y}"'
        f' width="{width:.0f}" height="{y}" font-family="sans-serif" font-size="12">'
        + "".join(parts)
        + "</svg>"
    )


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.0f},{y:.0f}" for x, y in points)


def _box(node: _Node, x: float, y: float) -> list[str]:
    w, h = node.width, node.height
    corner = h / 2 if node.shape == "ellipse" else 3
    rectangle = (
        f'<rect x="{x - w / 2:.0f}" y="{y - h / 2:.0f}" width="{w}" height="{h}"'
        f' rx="{corner:.0f}" fill="{escape(node.fill)}" stroke="#808080"/>'
    )
    top = y - _LINE * (len(node.lines) - 1) / 2
    plain = node.shape == "plain"
    ink = "#808080" if plain else "#000"
    words = [_words(line, x, top + _LINE * k, ink) for k, line in enumerate(node.lines)]
    return words if plain else [rectangle, *words]


def _words(text: str, x: float, y: float, fill: str, anchor: str = "middle") -> str:
    place = f'x="{x:.0f}" y="{y + 4:.0f}"'
    return f'<text {place} fill="{fill}" text-anchor="{anchor}">{escape(text)}</text>'
