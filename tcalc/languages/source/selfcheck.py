"""The self-check that generated source may carry: derivatives against central differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...graph.extents import Extent, extent_of
from ...graph.nodes import Var, dimensions
from ...graph.properties import PROPERTIES, sample_source, subspace

if TYPE_CHECKING:
    from .program import Program

SIZES = (3, 4, 2, 5)

DIFFERENCES = """
    x, step = values["{x}"], 1e-6
    expected = np.empty(found.shape)
    for place in np.ndindex(x.shape):
        a = np.zeros(x.shape)
        a[place] = 1.0
        direction = {direction}
        above = {before}(**{{**values, "{x}": x + step * direction}}{extra})
        below = {before}(**{{**values, "{x}": x - step * direction}}{extra})
        expected[(..., *place)] = (above - below) / (2 * step)
    error = np.abs(found - expected).max(initial=0) / max(1.0, np.abs(expected).max(initial=0))
    print(f"largest difference from central differences: {{error:.1e}}")
    if not error < 1e-6:
        raise SystemExit(1)
"""

SHAPES = """

    def leaves(tree):
        if isinstance(tree, dict):
            tree = tuple(tree.values())
        return [a for part in tree for a in leaves(part)] if isinstance(tree, tuple) else [tree]

    if [np.shape(a) for a in leaves(found)] != shapes:
        raise SystemExit(1)
    print("shapes are as expected")
"""


def difference_check(program: Program, before: Program, wrt: tuple[Var, ...], name: str) -> str:
    """Source that compares the function `name` with differences of `name`_before, when run."""
    sizes = _sizes(program)
    lines = _data(program, sizes)
    lines.append(f"    found = np.asarray({name}(**values{_extra(program, sizes)}))")
    block = DIFFERENCES.format(
        x=program.names[wrt[-1].name],
        before=f"{name}_before",
        direction=_each(wrt[-1], subspace(wrt[-1].properties).source("a")),
        extra=_extra(before, sizes),
    )
    return "\n".join(lines) + block


def shape_check(program: Program, name: str) -> str:
    """Source that checks the shapes of what the function `name` returns, when run."""
    sizes = _sizes(program)
    lines = _data(program, sizes)
    lines.append(f"    found = {name}(**values{_extra(program, sizes)})")
    shape = program.language.shape
    shapes = [shape([_size(extent, sizes) for extent in root.shape]) for root in program.roots]
    lines.append(f"    shapes = [{', '.join(shapes)}]")
    return "\n".join(lines) + SHAPES


def _sizes(program: Program) -> dict[str, int]:
    dims = dimensions([*program.roots, *program.variables.values()])
    return {dim: SIZES[k % len(SIZES)] for k, dim in enumerate(dims)}


def _extra(program: Program, sizes: dict[str, int]) -> str:
    """Dimensions that are parameters because no array has them."""
    given = [(local, sizes[dim]) for dim, local in program.sizes.items() if local in program.free]
    return "".join([f", {local}={size}" for local, size in given])


def _data(program: Program, sizes: dict[str, int]) -> list[str]:
    """Random arrays with the properties of the variables."""
    lines = ["", "", 'if __name__ == "__main__":']
    lines += ["    rng = np.random.default_rng(0)", "    values = {}"]
    for v in program.variables.values():
        shape = program.language.shape([_size(extent, sizes) for extent in v.shape])
        lines.append(f"    a = rng.uniform(0.5, 1.5, {shape})")
        made = _each(v, sample_source("a", v.properties))
        lines.append(f'    values["{program.names[v.name]}"] = {made}')
    return lines


def _each(v: Var, text: str) -> str:
    """Source for one matrix `a`, repeated for all that a variable holds."""
    if any(PROPERTIES[name].square for name in v.properties):
        for _ in range(v.ndim - 2):
            text = f"np.stack([{text} for a in a])"
    return text


def _size(extent: Extent, sizes: dict[str, int]) -> str:
    return str(extent_of(extent, sizes))
