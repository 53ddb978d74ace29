"""Coefficients of products: another one changes nothing else."""

from __future__ import annotations

from fractions import Fraction

import pytest

import tcalc as tc
from tcalc.graph.extents import Coef
from tcalc.graph.nodes import postorder
from tcalc.graph.normal import bare
from tcalc.graph.products import atoms_of, outer_product, with_coef
from tests import cases


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.name)
def test_another_coefficient_leaves_factors_in_their_order(case: cases.Case) -> None:
    e = case.expression()
    roots = [bare(tc.derivative(e, n, 2)) for n in case.targets if n in e.variables]
    for node in postorder([bare(e), *roots]):
        for coef in (Coef(1), Coef(-1), Coef(Fraction(3, 2))):
            atoms, out, extents, _ = atoms_of(node)
            assert with_coef(node, coef) is outer_product(atoms, out, extents, coef)
