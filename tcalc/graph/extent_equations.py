"""Equations between extents: what is left of a product, the rows of a packed triangle."""

from __future__ import annotations

from math import isqrt

from ..integers.affine import Affine, factors_of, product_of
from .extent_forms import MAX_TERMS, Floor, atom_of, atoms_in, floor_divided, is_exact, times


def exactly_divided(form: Affine, divisor: Affine) -> Affine | None:
    """The form whose product with the divisor is a form; None where there is none."""
    found = Affine()
    for _ in range(MAX_TERMS):
        if form == Affine():
            return found if divisor != Affine() else None
        (names, c), (others, d) = _leading(form), _leading(divisor)
        rest = list(names)
        for name in others:
            if name not in rest:
                return None
            rest.remove(name)
        if not d or c % d:
            return None
        term = Affine(((product_of(rest), c // d),)) if rest else Affine((), c // d)
        found, form = found + term, form - times(term, divisor)
    return None


def _leading(form: Affine) -> tuple[tuple[str, ...], int]:
    """The term of the highest degree, the first of these by names: its factors, and a number."""
    terms = [((), form.constant), *[(factors_of(name), c) for name, c in form.terms]]
    return min(terms, key=lambda term: (-len(term[0]), term[0]))


def triangle_entries(rows: Affine) -> Affine:
    """How many entries a triangle of so many rows has."""
    return floor_divided(times(rows, rows + 1), 2)


def triangle_rows(entries: Affine) -> Affine | None:
    """The k with k * (k + 1) / 2 entries, affine in names; None where there is none.

    Eight times the entries and 1 are the square of 2 * k + 1, whose coefficients follow from those
    of squares, of products with the first name, and of that name alone.
    """
    square = entries * 8 + 1
    for name, c in square.terms:
        atom = atom_of(name)
        if isinstance(atom, Floor) and c % atom.divisor == 0 and is_exact(*atom):
            square += atom.form * (c // atom.divisor) - Affine.of(name) * c
    first = next((n for n in sorted(set(atoms_in(square))) if square.coefficient(f"{n}*{n}")), "")
    twice = 2 * isqrt(max(0, square.coefficient(f"{first}*{first}"))) if first else 0
    root = Affine((), isqrt(max(0, square.constant)))
    if twice:
        terms = [(n, square.coefficient(product_of((first, n))) // twice) for n in atoms_in(square)]
        root = Affine(tuple({**dict(terms), first: twice // 2}.items()))
        root += square.coefficient(first) // twice
    rows = (root - 1).divided(2)
    return rows if times(root, root) == square and rows * 2 + 1 == root else None
