"""Functions of matrices in formulas, in source and in files."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.forms.choose import chosen
from tests.linalg_cases import eigenvalue_sum, eigh_function
from tests.test_matrix_functions import TIED, A, B, P, close, la


def test_formulas() -> None:
    f = tc.parse("tr(expm(A)) + sum(sqrtm(B)*logm(C))", **dict.fromkeys("ABC", ("n", "n")))
    assert chosen(tc.parse(str(f), **dict.fromkeys("ABC", ("n", "n")))) is chosen(f)
    assert str(tc.grad(f, "A")) == "expm(A)'"
    assert str(tc.grad(tc.trace(la.logm(A)), A)) == "inv(A)'"
    assert str(tc.grad(tc.trace(la.sqrtm(A)), A)) == "inv(sqrtm(A))'/2"
    C = tc.var("C", ("n", "n"))
    gradient = tc.grad(tc.trace(C @ la.expm(A)), A)
    assert str(gradient) == "expm_frechet(A, C)'"
    assert tc.to_latex(gradient) == r"\operatorname{L}_{\mathrm{expm}}(A, C)^{\top}"
    S = tc.var("S", ("n", "n"), symmetric=True)
    assert str(tc.grad(tc.trace(la.expm(S)), S)) == "expm(S)"
    t = tc.var("t")  # along the identity an exponential is its own derivative
    shifted = tc.trace(C @ la.expm(S + t * tc.eye("n")))
    assert str(tc.grad(tc.grad(shifted, t), t)) == "tr(expm_frechet(S + t*eye(n), C))"
    bounded = tc.grad(eigenvalue_sum(S, tc.arctan), S)
    assert str(bounded) == "matrix_function(S, 1/(x^2 + 1))"
    assert tc.to_latex(bounded) == r"\left(x \mapsto \frac{1}{x^{2} + 1}\right)(S)"
    total = tc.simplify(eigenvalue_sum(A, tc.exp))
    assert str(total) == "matrix_function_trace(A, exp(x))"
    assert tc.to_latex(total) == r"\operatorname{tr}((x \mapsto \exp(x))(A))"


PRINTED = [
    lambda: la.expm(A),
    lambda: tc.jacobian(la.logm(A), A),
    lambda: tc.hessian(tc.sum(la.sqrtm(A)), A),
    lambda: tc.jacobian(la.expm(B), B),
    lambda: tc.simplify(eigenvalue_sum(A, tc.exp)),
    lambda: tc.derivative(eigenvalue_sum(A, lambda w: w * tc.exp(w)), A, 3, "reverse"),
    lambda: tc.jacobian(eigh_function(B, lambda w: tc.where(w > 0, tc.sqrt(w), 0)), B),
]


def test_source_has_each_helper_once() -> None:
    source = tc.to_code(tc.hessian(eigenvalue_sum(A, tc.exp) + tc.sum(la.logm(A)), A))
    names = re.findall(r"^def (\w+)", source, flags=re.MULTILINE)
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("build", PRINTED)
def test_source_computes_the_same(build: Any) -> None:
    e = build()
    for data in (P @ P.T + P / 9, TIED["double"]):
        data = data if "A" in e.variables else np.stack([data, P @ P.T])
        space: dict[str, Any] = {}
        exec(compile(tc.to_code(e), "printed", "exec"), space)
        found = space["f"](data)
        assert found.shape == np.shape(e({next(iter(e.variables)): data}))
        close(found, e({next(iter(e.variables)): data}), 1e-11)


def test_a_new_process_reads_expressions() -> None:
    e = tc.hessian(eigenvalue_sum(A, tc.exp) + tc.sum(la.logm(A)), A)
    assert pickle.loads(pickle.dumps(e)) is e
    program = (
        "import pickle, sys, numpy as np; e = pickle.load(sys.stdin.buffer)\n"
        "print(e(A=2 * np.eye(2)).sum().hex())"
    )
    root = Path(__file__).resolve().parent.parent
    result = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(e), capture_output=True, check=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert float.fromhex(result.stdout.decode().strip()) == e(A=2 * np.eye(2)).sum()
