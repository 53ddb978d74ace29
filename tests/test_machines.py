"""Plans for different machines, and the table of back ends that each have one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.contraction.common_subproducts import ContractionOperands
from tcalc.contraction.paths import contraction_path
from tcalc.plan.kinds.table import KINDS
from tcalc.plan.lowering.make import make_plan
from tcalc.plan.steps import Plan, TiledLoop
from tcalc.run.backends import BACKENDS
from tcalc.support.machine import FORMS, NOMINAL_MACHINE
from tests.shared import plan_for_machine

A, B = tc.var("A", ("n", "n")), tc.var("B", ("n", "n"))
X, d, x = tc.var("X", ("m", "n")), tc.var("d", "m"), tc.var("x", "m")
LINE, WEIGHTS = tc.var("line", 3000), tc.var("weights", 40)
INVERSE = tc.linalg.tri_inverse(A + 30 * tc.eye("n"))
RNG = np.random.default_rng(0)
DATA = {
    "A": RNG.normal(size=(200, 200)),
    "X": RNG.normal(size=(3000, 100)),
    "d": RNG.uniform(1, 2, size=3000),
    "line": RNG.normal(size=3000),
    "weights": RNG.normal(size=40),
}
#: By form, an expression whose plan has it.
WITH: dict[str, tc.Expr] = {
    "gram": X.T @ (tc.exp(d)[:, None] * X),
    "half": tc.linalg.cholesky(A @ A.T + 300 * tc.eye("n")) * (A @ tc.exp(A)),
    "congruence": INVERSE @ tc.exp(A + A.T) @ INVERSE.T,
    "correlate": tc.build(2961, lambda i: tc.build(40, lambda k: LINE[i + k]) @ WEIGHTS),
    "tile": tc.sum(tc.exp(tc.sin(X) * d[:, None]) + X * X),
}


def forms(plan: Plan) -> set[str]:
    found = {"tile" for unit in plan.units if isinstance(unit, TiledLoop)}
    for step in plan.steps:
        found.add("half" if step.kind == "dot" and step.params else step.kind)
    return found & FORMS


def test_every_folder_is_a_row() -> None:
    folder = Path(tc.__file__).parent / "backends"
    names = {p.name for p in folder.iterdir() if (p / "program.py").exists()} - {"host"}
    assert names <= set(BACKENDS)
    for name in names:
        assert BACKENDS[name].bind.__module__ == f"tcalc.backends.{name}.program"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("form", WITH)
def test_forms_that_a_back_end_lacks(
    form: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backend == "dask":
        pytest.importorskip("dask")
    e = WITH[form]
    given = {name: DATA[name] for name in e.variables}
    shapes = {name: array.shape for name, array in given.items()}
    known = tc.compile(e, backend=backend)
    assert (form in forms(known.plan_for(**shapes))) == (form in BACKENDS[backend].machine.forms)
    plan_for_machine(monkeypatch, forms=FORMS - {form})
    other = tc.compile(e, backend=backend)
    assert form not in forms(other.plan_for(**shapes))
    np.testing.assert_allclose(other(**given), known(**given), rtol=1e-10, atol=1e-10)


#: Where the axes of symmetric matrices stand, among others, in the operand and in the result.
AXES: dict[str, Any] = {
    "mn->ij": np.float64,
    "pmn->pij": np.float32,
    "mpn->ipj": np.float64,
    "nmp->jip": np.float32,
    "pmn->jpi": np.float64,
}


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("axes", AXES)
def test_congruences_are_those_with_an_inverse(
    axes: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_for_machine(monkeypatch, half_rows=1)
    (word, out), dtype, rng = axes.split("->"), AXES[axes], np.random.default_rng(3)
    for n in (1, 131):
        sizes = {"m": n, "n": n, "p": 3}
        shape = tuple([sizes[k] for k in word])
        swapped = tuple([word.index({"m": "n", "n": "m"}.get(k, k)) for k in word])
        factor, v = tc.var("A", (n, n)), tc.var("V", shape)
        x, b = tc.linalg.tri_inverse(factor), tc.cos(v + v.transpose(swapped))
        known = tc.compile(tc.einsum(f"im,jn,{word}->{out}", x, x, b), backend=backend)
        kinds = [s.kind for s in known.plan_for(A=(n, n), V=shape).steps]
        assert kinds.count("congruence") == 1
        A = (np.tril(rng.normal(size=(n, n))) / n + 2 * np.eye(n)).astype(dtype)
        V = rng.normal(size=shape).astype(dtype)
        inverse = np.linalg.inv(A.astype(float))
        between = np.cos(V + V.transpose(swapped))
        wanted = np.einsum(f"im,jn,{word}->{out}", inverse, inverse, between)
        found = known(A=A, V=V)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, wanted, atol=50 * np.finfo(dtype).eps)
        A[n // 2, n // 2] = 0
        with pytest.raises(np.linalg.LinAlgError, match="a zero on the diagonal, in tri_inverse"):
            known(A=A, V=V)


def test_thin_matrices_between_inverses_are_multiplied_one_by_one() -> None:
    """X U U' X' of few columns U takes X U: no symmetric matrix is made for it."""
    U = tc.var("U", ("n", 3))
    e = INVERSE @ (U @ U.T) @ INVERSE.T
    plan = tc.compile(e).plan_for(A=(200, 200), U=(200, 3))
    assert plan.flops < 200**3 / 4


def test_machines_have_the_speeds_of_all_kinds() -> None:
    for row in BACKENDS.values():
        assert all(row.machine.speed(kind.speed) > 0 for kind in KINDS.values())


def test_paths_are_kept_by_machine() -> None:
    """Where matrix products are as slow as all else, one that sums much is avoided."""
    given = ContractionOperands(((0, 1), (1, 2), (2,)), (0, 1, 2), ((), (), ()), (0, 0, 0))
    times = []
    for gemm in (8.0, 1.0, 8.0):
        machine = replace(NOMINAL_MACHINE, gemm=gemm)
        times.append(contraction_path(given, (0,), (50, 60, 70), (), machine).time)
    assert times[0] == times[2] < times[1]


def test_plans_of_loops_are_for_the_machine() -> None:
    loop = tc.fold(lambda s, i: tc.exp(s) * B + tc.sin(s) / (i + 1), A, 3)
    for large in (8, NOMINAL_MACHINE.large):
        machine = replace(NOMINAL_MACHINE, large=large, tile=64)
        plan = make_plan([loop], {"n": 30}, machine=machine)
        (inner,) = [p for step in plan.steps for p in step.params if isinstance(p, Plan)]
        assert ("tile" in forms(inner)) == (large == 8)


def test_a_machine_has_memory_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    plan_for_machine(monkeypatch, memory=1000)
    with pytest.raises(tc.MemoryLimitError, match="1000 bytes available"):
        tc.compile(tc.exp(A))(A=np.ones((30, 30)))
    allowed = tc.compile(tc.exp(A), memory_limit="1MiB")
    assert allowed(A=np.zeros((30, 30))).sum() == 900
