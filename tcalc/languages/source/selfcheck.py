"""What a program checks when it checks itself: a derivative against differences, or shapes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, islice, product

from ...graph.extents import Shape, extent_of
from ...graph.formulas import Formula, recorded
from ...graph.nodes import Var, dimensions
from ...graph.properties import PROPERTIES, sample_formula, subspace
from .formulas import written
from .language import NUMBERS, Check, Difference, Sample
from .program import SourceProgram
from .refused import fits

SIZES = (3, 4, 2, 5)
#: Where the program refuses these: how many multiples are tried, then which others, how many.
MULTIPLES, OTHER_SIZES, MOST = 8, (2, 3, 5, 1, 8, 13), 1000


def difference_check(
    program: SourceProgram, before: SourceProgram, wrt: tuple[Var, ...], name: str
) -> Check:
    """That the function `name` agrees with differences of `name`_before."""
    sizes = _sizes(program)
    direction = _sample(program, wrt[-1], sizes, subspace(wrt[-1].properties).formula)
    difference = Difference(f"{name}_before", _free(before, sizes), direction)
    return shape_check(program, name)._replace(difference=difference)


def shape_check(program: SourceProgram, name: str) -> Check:
    """That the function `name` returns arrays of the right shapes."""
    sizes = _sizes(program)
    samples = []
    for v in program.variables.values():
        n = _shape(v.shape, sizes)[-1] if v.ndim else 1
        samples.append(_sample(program, v, sizes, sample_formula(v.properties, n)))
    shapes = [_shape(root.shape, sizes) for root in program.roots]
    return Check(name, samples, _free(program, sizes), shapes, None)


def _sample(program: SourceProgram, v: Var, sizes: Mapping[str, int], formula: Formula) -> Sample:
    """Numbers for a variable, of which a formula makes the matrices."""
    square = any(PROPERTIES[name].square for name in v.properties)
    shape, stack = _shape(v.shape, sizes), v.ndim - 2 if square else 0
    numbers = program.language.variable(NUMBERS, shape[stack:])
    value = written(program.language, recorded(formula, 1), [numbers])
    return Sample(program.names[v.name], shape, value, stack, v.integral)


def _sizes(program: SourceProgram) -> dict[str, int]:
    """Extents of dimensions: small ones, others where the program refuses these."""
    dims = dimensions([*program.roots, *program.variables.values()])
    small = {dim: SIZES[k % len(SIZES)] for k, dim in enumerate(dims)}
    larger = ({dim: n * k for dim, n in small.items()} for k in range(1, MULTIPLES))
    every = product(OTHER_SIZES, repeat=len(dims))
    others = (dict(zip(dims, sizes, strict=True)) for sizes in islice(every, MOST))
    return next((sizes for sizes in chain(larger, others) if fits(program.roots, sizes)), small)


def _free(program: SourceProgram, sizes: Mapping[str, int]) -> dict[str, int]:
    """Dimensions that are parameters because no array has them."""
    scope = program.scope
    return {name: sizes[dim] for dim, name in scope.sizes.items() if name in scope.free}


def _shape(shape: Shape, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple([extent_of(extent, sizes) for extent in shape])
