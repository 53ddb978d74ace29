"""Printed forms: reading quality as tables, exact round trips, sharing and depth."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import tcalc as tc
from tcalc.calculus import projection
from tcalc.forms.choose import chosen
from tcalc.graph.nodes import Expr
from tcalc.languages.latex import Latex
from tcalc.languages.matrix.print import to_text
from tcalc.languages.writing.layout import FormulaLayout
from tcalc.languages.writing.notation import Fragment
from tcalc.languages.writing.style import Style
from tcalc.ops.matrix.eigh import eigh
from tcalc.ops.matrix.lq import lq
from tests.one_spelling import one_spelling
from tests.printed import DERIVED, FIXED, A, R, S, V, X, high_order, parsed, x

LATEX = {
    "2*(U*V' - T)*V": r"2 (U V^{\top} - T) V",
    "X'*(X*w - y)/2": r"\frac{1}{2} X^{\top} (X w - y)",
    "X'*X + lam*eye(n)": r"X^{\top} X + \lambda I_{n}",
    "diag(x)*A": r"\operatorname{diag}(x) \, A",
    "x .* exp(z)": r"x \odot \exp(z)",
    "x'*A*x": r"x^{\top} A x",
    "norm2(x)": r"\|x\|",
    "x./(z + 1)": r"x \oslash (z + \mathbf{1})",
    "x'*z/c": r"\frac{x^{\top} z}{c}",
    "c*A*x/(2*x'*z)": r"\frac{c}{2 x^{\top} z} A x",
    "A*x/norm2(x)": r"\frac{A x}{\|x\|}",
    "2*pi*x/3": r"\frac{2 \pi}{3} x",
    "inv(A)*x": r"A^{-1} x",
    "inv(A)'*x*z'": r"A^{-\top} x z^{\top}",
    "where(0 < x, x, -x)": r"\begin{cases} x & x > 0 \\ -x & \text{otherwise} \end{cases}",
    "A.^2*vector(1)": r"A^{\odot 2} \mathbf{1}",
    "matrix(0, m, n)": "0",
    "softmax(A*x)": r"\operatorname{softmax}(A x)",
    "c^2*x": "c^{2} x",
    "A - c": r"A - c \mathbf{1} \mathbf{1}^{\top}",
    "x - mean(x)": r"x - \operatorname{mean}(x) \, \mathbf{1}",
    "1./x": r"\mathbf{1} \oslash x",
    "x.^c + x.^2": r"x^{\odot 2} + x^{\odot c}",
    "exp(x'*z/c)*x": r"\exp\left(\frac{x^{\top} z}{c}\right) \, x",
    "(A*x > 0) .* x": r"x \odot [A x > 0]",
    "[[1, 2], [3, 4.5]]": r"\left[\begin{matrix} 1 & 2 \\ 3 & 4.5 \end{matrix}\right]",
}


@pytest.mark.parametrize("text", FIXED)
def test_text_is_printed_as_a_person_writes_it_and_parses_back(text: str) -> None:
    e = parsed(text)
    assert str(e) == text
    assert parsed(str(e)) is e


@pytest.mark.parametrize(("text", "latex"), LATEX.items())
def test_latex(text: str, latex: str) -> None:
    assert tc.to_latex(parsed(text)) == latex
    assert parsed(text)._repr_latex_() == f"${latex}$"


@pytest.mark.parametrize(("e", "text", "einsum"), high_order(), ids=lambda v: str(v)[:20])
def test_einsum_forms(e: Expr, text: str, einsum: str) -> None:
    assert str(e) == text
    assert tc.to_einsum(e) == einsum


def test_unit_tensors_are_deltas_in_latex() -> None:
    e = 2 * tc.einsum("jl->ijil", V.T @ V, sizes={"i": "m"})
    expected = r"2 [(V^{\top} V)_{jl} \delta_{ik}]_{ijkl}"
    assert tc.to_latex(e) == expected


def test_latex_has_no_double_subscripts() -> None:
    T3 = tc.var("T3", ("B", "n", "n"))
    assert tc.to_latex(T3.sum(0)) == r"\left[\sum_{k} {T_{3}}_{kij}\right]_{ij}"
    nested = tc.to_latex(tc.einsum("bij,ij->b", tc.exp(T3.mT), A))
    assert nested == r"\left[\sum_{jk} A_{jk} \exp(T_{3})_{ikj}\right]_{i}"


def test_sums_of_index_forms_stand_in_one_bracket() -> None:
    hessian = tc.to_latex(tc.hessian(tc.logdet(S), S))
    assert hessian == r"-\operatorname{sym}_{2}([(S^{-1})_{ik} (S^{-1})_{jl}]_{ijkl})"
    outer = tc.einsum("i,j,k->ijk", x, x, x)
    signs = tc.to_latex(tc.transpose(R, (1, 0, 2)) - 3 * (outer - tc.transpose(R, (2, 0, 1))))
    assert signs == r"[R_{jik} - 3 (x_{i} x_{j} x_{k} - R_{jki})]_{ijk}"


def test_entries_of_sums_in_sums_are_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A permutation of axes is pushed into terms, whose entries every sum around asks for."""
    P, B = tc.var("S", ("n", "n"), positive_definite=True), tc.var("B", ("n", "n"))
    written, fenced = list[int](), Latex.fenced
    monkeypatch.setattr(Latex, "fenced", lambda *args: written.append(1) or fenced(*args))
    e = tc.derivative(tc.trace(tc.inv(P) @ B), P, 4)
    tc.to_latex(e)
    assert 0 < len(written) < 3000  # each for every sum around it would be 10,000


def test_latex_of_parameters_and_outputs() -> None:
    assert tc.to_latex(tc.logsumexp(A, axis=-1)) == (r"\operatorname{logsumexp}_{\mathrm{rows}}(A)")
    assert tc.to_latex(tc.max(R, axis=(1, 2))) == r"\max_{\mathrm{last\,2\,axes}}(R)"
    assert tc.to_latex(tc.norm(A, axis=1)) == r"\|A\|_{\mathrm{rows}}"
    factors = [tc.to_latex(part) for part in (*lq(A), *eigh(S))]
    names = [r"L_{\mathrm{lq}}", r"Q_{\mathrm{lq}}", r"\lambda", r"V_{\mathrm{eig}}"]
    wanted = [rf"{name}({'AASS'[k]})" for k, name in enumerate(names)]
    assert factors == wanted
    assert Latex().parameter("", "raise") == r"\mathrm{raise}"
    assert Latex().parameter("", "n") == "n"


def test_extents_have_symbols_in_latex() -> None:
    assert tc.to_latex(tc.eye("n_obs")) == r"I_{n_{\mathrm{obs}}}"
    shape = ("rows", "2*n", 3)
    assert tc.to_latex(tc.ones(shape)) == r"\mathbf{1}_{\mathrm{rows} \times 2 n \times 3}"


def test_brackets_of_functions_need_no_parentheses_in_latex() -> None:
    assert tc.to_latex(tc.floor(x) + tc.ceil(x)) == r"\lfloor x \rfloor + \lceil x \rceil"


def test_parentheses_of_functions_grow_around_what_is_tall_in_latex() -> None:
    c = tc.var("c")
    half = r"\frac{1}{2} c"
    assert tc.to_latex(tc.exp(c / 2)) == rf"\exp\left({half}\right)"
    assert tc.to_latex(tc.hypot(c, c / 2)) == rf"\operatorname{{hypot}}\left(c, {half}\right)"
    assert tc.to_latex(tc.exp(tc.sin(c))) == r"\exp(\sin(c))"
    nested = tc.to_latex(tc.log(1 + tc.exp(tc.cos(c) + tc.sin(1 / c))))
    assert nested.count(r"\left(") == nested.count(r"\right)") == 3
    assert r"\cos(c)" in nested


def test_latex_names() -> None:
    names = {"x1": "x_{1}", "alpha2": r"\alpha_{2}", "w_hat": r"w_{\mathrm{hat}}"}
    assert {name: tc.to_latex(tc.var(name)) for name in names} == names


@pytest.mark.parametrize(("text", "name", "gradient", "hessian"), DERIVED)
def test_derivatives_read_well(text: str, name: str, gradient: str, hessian: str | None) -> None:
    f = parsed(text)
    assert str(tc.grad(f, name, mode="reverse")) == gradient
    if hessian is not None:
        assert str(tc.hessian(f, name, mode="reverse")) == hessian


def test_dimensions_in_coefficients_are_written() -> None:
    assert str(X.mean(0)) == "X'*vector(1)/m"
    assert str(tc.mean(X) * x) == "mean(X)*x"


# --- size, sharing, order -------------------------------------------------------------------------

PRINTERS = [to_text, tc.to_latex, tc.to_einsum, tc.to_code]


@pytest.mark.parametrize("printer", PRINTERS)
def test_exponential_sharing_prints_at_once(printer: Any) -> None:
    e: Expr = x
    for _ in range(40):
        e = e * tc.sin(e)
    start = time.perf_counter()
    assert len(printer(e)) < 20_000
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize("text", ["exp(tr(S^2))", "tr(inv(S)*X)", "norm2(S)^4", "x'*S^4*x"])
def test_long_formulas_are_laid_out_once_in_each_style_and_name_the_same_parts(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    symmetric = tc.var("S", ("n", "n"), symmetric=True)
    e = tc.derivative(tc.parse(text, S=symmetric, X=("n", "n"), x=("n",)), "S", 4)
    chosen(e)  # its parts are laid out to choose their forms
    runs: list[tuple[str, set[int]]] = []  # the style, and the parts that may have names
    run = FormulaLayout.run

    def counted(layout: FormulaLayout, nodes: Sequence[Expr]) -> Fragment:
        runs.append((type(layout.style).__name__, set(layout.shared)))
        return run(layout, nodes)

    monkeypatch.setattr(FormulaLayout, "run", counted)
    texts = tc.to_latex(e), tc.to_mathml(e), str(e)
    styles, named = zip(*runs, strict=True)
    # perhaps of the size; then, of MathML, of the alternative text; then of str
    assert styles[-4:] == ("Latex", "MathML", "Style", "Style")
    assert styles[:-4] in ((), ("Style",))
    assert not any(named[:-4])
    assert named[-4]
    assert named[-4:] == 4 * named[-4:-3]
    assert all(
        sign in part for sign, part in zip(("t_{1}", "<mtable", "t1 = "), texts, strict=True)
    )


def test_statements_parse_back() -> None:
    e: Expr = A @ x
    for _ in range(30):
        e = tc.sin(e) + (A @ e) * e
    assert str(e).startswith("t1 = ")
    assert one_spelling(parsed(str(e))) is one_spelling(e)


@pytest.mark.parametrize("printer", PRINTERS)
def test_deep_chains_print(printer: Any) -> None:
    e: Expr = x
    for _ in range(10_000):
        e = tc.sin(e) + x
    assert len(printer(e)) > 70_000


def test_output_does_not_depend_on_the_hash_seed() -> None:
    program = (
        "import tcalc as tc\n"
        "f = tc.parse('sum(log(1 + exp(-y .* (X*w)))) + norm2(X*w)', X=('m','n'), y='m', w='n')\n"
        "h = tc.hessian(f, 'w')\n"
        "print(h, tc.to_latex(h), tc.to_einsum(h), tc.to_code(h, check=True))\n"
    )
    root = Path(__file__).resolve().parent.parent
    outputs = set()
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        result = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, check=True
        )
        outputs.add(result.stdout)
    assert len(outputs) == 1


def test_sums_in_sums_are_laid_out_as_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each projection onto symmetric matrices permutes a sum's axes, and the permutation goes into
    the terms: they are written once for the size of the formula, at most, and once for its text."""
    symmetric = tc.var("S", ("n", "n"), symmetric=True)
    e = tc.derivative(tc.parse("tr(S*S*S*S)", S=symmetric), "S", 4)
    written, projected = 0, 0
    einsum, slot = Style.einsum, projection._project_slot

    def counted(*args: Any) -> Any:
        nonlocal written
        written += 1
        return einsum(*args)

    def once(*args: Any) -> Any:
        nonlocal projected
        projected += 1
        return slot(*args)

    monkeypatch.setattr(projection, "_project_slot", once)
    chosen(e)  # its parts are laid out to choose their forms
    monkeypatch.setattr(Style, "einsum", counted)
    text = str(e)
    assert 0 < written <= 2 * text.count("#(")
    tc.to_latex(e)
    assert projected == 4
