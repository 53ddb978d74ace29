"""The self-check that generated source may carry: derivatives against central differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..expr import Derivative, Var, dimensions
from ..extents import Extent

if TYPE_CHECKING:
    from .code import Program
    from .languages import NumPy

SIZES = (3, 4, 2, 5)

DATA = {
    "positive_definite": "a @ a.T + len(a) * np.eye(len(a))",
    "symmetric": "(a + a.T) / 2",
    "diagonal": "np.diag(np.diag(a))",
    "lower": "np.tril(a)",
    "upper": "np.triu(a)",
    "integer": "np.floor(a).astype(int)",
}
DIRECTION = {name: text for name, text in DATA.items() if name not in ("positive_definite", "integer")}

DIFFERENCES = '''
    x, step = values["{x}"], 1e-6
    expected = np.empty(found.shape)
    for place in np.ndindex(x.shape):
        a = np.zeros(x.shape)
        a[place] = 1.0
        a = {direction}
        above = {before}(**{{**values, "{x}": x + step * a}})
        below = {before}(**{{**values, "{x}": x - step * a}})
        expected[(..., *place)] = (above - below) / (2 * step)
    error = np.abs(found - expected).max(initial=0) / max(1.0, np.abs(expected).max(initial=0))
    print(f"largest difference from central differences: {{error:.1e}}")
    if not error < 1e-6:
        raise SystemExit(1)
'''


def self_check(program: Program, e: Any, name: str, language: NumPy) -> str:
    """Source that checks the function `name`, and `name`_before for a derivative, when run."""
    found = list(program.variables.values())
    dims = dimensions([*program.roots, *found])
    sizes = {dim: SIZES[k % len(SIZES)] for k, dim in enumerate(dims)}
    lines = ['if __name__ == "__main__":', "    rng = np.random.default_rng(0)", "    values = {}"]
    for v in found:
        shape = language.shape([_size(extent, sizes) for extent in v.shape])
        lines.append(f"    a = rng.uniform(0.5, 1.5, {shape})")
        key = program.names[v.name]
        lines.append(f'    values["{key}"] = {_chosen(v, DATA)}')
    given = [f"{program.sizes[d]}={sizes[d]}" for d in sizes if program.sizes.get(d) in program.free]
    arguments = ", ".join([*given, "**values"])
    if isinstance(e, Derivative):
        last = e.wrt[-1]
        lines.append(f"    found = np.asarray({name}({arguments}))")
        block = DIFFERENCES.format(
            x=program.names[last.name], before=f"{name}_before", direction=_chosen(last, DIRECTION)
        )
        return "\n".join(["", "", *lines]) + block
    lines.append(f"    found = {name}({arguments})")
    shapes = ", ".join([language.shape([_size(x, sizes) for x in r.shape]) for r in program.roots])
    lines.append(f"    shapes = [{shapes}]")
    return "\n".join(["", "", *lines]) + SHAPES


SHAPES = '''

    def leaves(tree):
        if isinstance(tree, dict):
            tree = tuple(tree.values())
        return [a for part in tree for a in leaves(part)] if isinstance(tree, tuple) else [tree]

    if [np.shape(a) for a in leaves(found)] != shapes:
        raise SystemExit(1)
    print("shapes are as expected")
'''


def _size(extent: Extent, sizes: dict[str, int]) -> str:
    return str(extent if isinstance(extent, int) else sizes[extent])


def _chosen(v: Var, table: dict[str, str]) -> str:
    """The last of the properties in the order of the table decides for `a`."""
    return next((text for name, text in table.items() if name in v.properties), "a")
