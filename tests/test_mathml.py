"""MathML: well-formed, of MathML Core, and the same formula as text and LaTeX."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.operators import TABLE
from tcalc.languages import templates
from tcalc.languages.mathml import MathML
from tcalc.languages.writing.symbols import GREEK
from tests.corpus import corpus
from tests.mathml_text import checked, text_of, value_of
from tests.printed import DECLARED, DERIVED, FIXED, A, R, S, V, X, high_order, parsed, x, z

SIZES = {"m": 4, "n": 3, "k": 2}
#: Formulas that do not tell the shape, and those with a dimension as a divisor.
SHAPELESS = {"matrix(0, m, n)", "2*eye(n)/n - 2/n/n"}


def values() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    found = {
        name: rng.uniform(0.5, 2, [SIZES[str(d)] for d in v.shape]) for name, v in DECLARED.items()
    }
    found["S"] = found["S"] @ found["S"].T + np.eye(3)
    return found


def texts(tree: ET.Element, tag: str) -> list[str]:
    return [element.text or "" for element in tree.iter(tag)]


# --- the whole corpus -----------------------------------------------------------------------------


def test_every_case_of_the_tables_is_mathml_core() -> None:
    for e in corpus().values():
        tree = checked(tc.to_mathml(e))
        assert tree.get("display") == "block"
        assert tree.get("alttext") == str(e).replace("\n", "; ")


@pytest.mark.parametrize("text", FIXED)
def test_a_formula_reads_back_to_the_node_it_was_written_from(text: str) -> None:
    e = parsed(text)
    tree = checked(tc.to_mathml(e))
    assert tree.get("alttext") == text
    if text not in SHAPELESS:
        back, data = parsed(text_of(tree)), values()
        assert back is e or np.allclose(back(data, **SIZES), e(data, **SIZES), rtol=1e-14)


INDEXED = [
    *[h for text, name, *_ in DERIVED if (h := tc.hessian(parsed(text), name)).ndim > 2],
    *[e for e, *_ in high_order() if e.ndim > 2 and e.variables.keys() <= DECLARED.keys()],
    tc.derivative(parsed("sum(x.^4)"), "x", 3),
    tc.derivative(parsed("sum(exp(x))"), "x", 4),
    tc.derivative(parsed("logsumexp(x)"), "x", 3),
    tc.hessian(parsed("tr(A*A*A)"), "A"),
    tc.derivative(parsed("x'*A*x*(x'*z)"), "x", 3),
]


@pytest.mark.parametrize("e", INDEXED, ids=str)
def test_index_forms_have_the_value_that_their_symbols_say(e: tc.Expr) -> None:
    data = values()
    tree = checked(tc.to_mathml(e))
    wanted = e(data, **SIZES)
    if not {"𝟏", "sym"} & {*texts(tree, "mi")}:  # without symmetrisers: what is asked is indices
        found = value_of(tree, lambda text: parsed(text)(data, **SIZES), wanted.shape)
        np.testing.assert_allclose(found + np.zeros(wanted.shape), wanted, atol=1e-12)


def test_deep_and_shared_expressions_are_written() -> None:
    e: tc.Expr = x
    for _ in range(40):
        e = e * tc.sin(e)
    assert len(tc.to_mathml(e)) < 100_000
    tree = checked(tc.to_mathml(e))
    assert len(list(tree.iter("mtr"))) > 5
    for _ in range(2_000):
        e = tc.sin(e) + x
    with tc.limits(characters=1e8):
        assert tc.to_mathml(e).count("<mi>sin</mi>") > 2_000


# --- notation -------------------------------------------------------------------------------------


def test_fences_grow_where_their_content_is_tall_only() -> None:
    def growing(e: tc.Expr) -> list[bool]:
        tree = checked(tc.to_mathml(e))
        return [f.get("stretchy") != "false" for f in tree.iter("mo") if f.text in (*"()[]|‖{",)]

    assert growing(2 * (A @ A - A) @ x) == [False, False]
    assert growing(tc.exp(x / z)) == [False, False]
    assert growing(tc.exp(1 / tc.norm(x))) == [True, False, False, True]
    assert growing(tc.exp(tc.sqrt(x))) == [False, False]
    assert growing(tc.norm(x)) == [False, False]
    assert growing(tc.norm(x / tc.sum(z))) == [True, False, False, True]
    assert growing(tc.where(x < z, x, z)) == [True]
    assert growing(R.sum(0)) == [True, True]  # a sum with its index below
    assert growing(tc.einsum("ij,jk->ijk", A, A)) == [False, False]


def test_products_applications_and_indices_have_their_invisible_operators() -> None:
    tree = checked(tc.to_mathml(tc.einsum("jl->ijil", tc.exp(A) @ A, sizes={"i": "m"})))
    marks = texts(tree, "mo")
    assert marks.count("\u2061") == 1
    assert marks.count("\u2062") == 2  # of the matrices, and before the delta
    assert "δ" in texts(tree, "mi")
    assert marks.count("\u2063") == 5  # of jl, ik and ijkl


def test_transposes_are_exponents_that_no_operator_spacing_widens() -> None:
    tree = checked(tc.to_mathml(X.T))
    (above,) = [e[1] for e in tree.iter("msup")]
    assert (above.tag, above.text, above.attrib) == ("mi", "⊤", {"mathvariant": "normal"})


def test_sums_have_their_indices_as_limits() -> None:
    tree = checked(tc.to_mathml(R.sum(0)))
    (limits,) = tree.iter("munder")
    assert ["".join(part.itertext()) for part in limits] == ["∑", "k"]


def test_names_have_the_symbols_of_latex() -> None:
    shown = {
        "x1": "<msub><mi>x</mi><mn>1</mn></msub>",
        "x_1": "<msub><mi>x</mi><mn>1</mn></msub>",
        "alpha": "<mi>α</mi>",
        "lam": "<mi>λ</mi>",
        "Gamma": '<mi mathvariant="normal">Γ</mi>',
        "rows": "<mi>rows</mi>",
        "w_hat": "<msub><mi>w</mi><mi>hat</mi></msub>",
    }
    for name, wanted in shown.items():
        assert wanted in tc.to_mathml(tc.var(name)), name
    for name in GREEK:
        (letter,) = texts(checked(tc.to_mathml(tc.var(name))), "mi")
        assert len(letter) == 1


ALIKE = ["lam", "lambda", "lambda_", "λ", "eps", "epsilon", "x1", "x_1", "x__1", "x1_"]


@pytest.mark.parametrize("one", ALIKE)
def test_names_that_would_look_alike_stay_apart(one: str) -> None:
    for two in ALIKE:
        if one != two:
            tree = checked(tc.to_mathml(tc.arctan2(tc.var(one), tc.var(two))))
            (inside,) = [row for row in tree.iter("mrow") if any(m.text == "," for m in row)]
            first, _, second = (ET.tostring(part) for part in inside)
            assert first != second


def test_a_transposed_name_has_both_scripts_on_one_letter() -> None:
    both = checked(tc.to_mathml(tc.var("A_1", ("n", "n")).T))
    assert [part.text for part in both.iter() if part.text] == ["A", "1", "⊤"]
    assert [part.tag for part in both] == ["msubsup"]


def test_nests_are_tables_with_their_places() -> None:
    f = parsed("x'*A*x")
    tree = checked(tc.to_mathml({"value": f, "slope": tc.grad(f, x)}))
    rows = ["".join(row[0].itertext()) for row in tree.iter("mtr")]
    assert rows == ["[value]:", "[slope]∂∂x:"]
    blocks = checked(tc.to_mathml(tc.hessian(parsed("sum((U*V' - T).^2)"), ("U", "V"))))
    above = ["".join(f[0].itertext()) + "".join(f[1].itertext()) for f in blocks.iter("mfrac")]
    assert above == ["∂2∂U∂U", "∂2∂U∂V", "∂2∂V∂U", "∂2∂V∂V"]


def test_statements_are_a_table_that_is_aligned_at_the_equality_signs() -> None:
    e: tc.Expr = x
    for _ in range(30):
        e = tc.sin(e) + (A @ e) * e
    tree = checked(tc.to_mathml(e))
    *rows, last = tree.iter("mtr")
    assert len(rows) > 5
    lines = [text_of(name) + " = " + text_of(value).removeprefix(" == ") for name, value in rows]
    assert tc.parse("; ".join([*lines, text_of(last[1])]), **DECLARED) is e


def test_names_for_what_is_repeated_are_told_below_the_formula() -> None:
    r = parsed("A*x - z")
    e = tc.grad(tc.sum(tc.exp(-r @ r / 2) * r), x)
    tree = checked(tc.to_mathml(e, where=True))
    assert tree.get("alttext") == tc.to_text(e, where=True)
    first, *rows = tree.iter("mtr")
    assert rows[0][0][0].text == "where\u00a0"
    named = ["".join(row[0].itertext()).removeprefix("where\u00a0") for row in rows]
    meanings = [text_of(row[1]).removeprefix(" == ") for row in rows]
    lines = [f"{name} = {value}" for name, value in zip(named, meanings, strict=True)]
    back, data = tc.parse("; ".join([*lines, text_of(first[1])]), **DECLARED), values()
    np.testing.assert_allclose(back(data), e(data), rtol=1e-12)
    assert checked(tc.to_mathml(x, where=True)).find("mtable") is None


def test_display() -> None:
    assert checked(tc.to_mathml(x, display="inline")).get("display") == "inline"
    with pytest.raises(ValueError, match="block or inline, not 'b\"'"):
        tc.to_mathml(x, display='b"')


# --- what users write -----------------------------------------------------------------------------

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a&b",
    "]]>",
    "--></math>",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_users_name_is_text_and_never_markup(text: str) -> None:
    tree = checked(tc.to_mathml({text: x, "b": {text: z}}))
    assert {e.tag for e in tree.iter()} <= {
        "math",
        "mtable",
        "mtr",
        "mtd",
        "mrow",
        "mi",
        "mo",
        "mn",
        "msub",
        "mtext",
    }
    function = tc.elementwise(
        f"hostile_{HOSTILE.index(text)}", lambda a: a, None, latex=text.replace("{", "") + "({0})"
    )
    shown = checked(tc.to_mathml(function(x)))
    assert "script" not in [e.tag for e in shown.iter()]
    plain = checked(tc.to_mathml(tc.var("é_1", "n") * tc.var("ж")))
    assert texts(plain, "mi") == ["ж", "é"]


def test_every_command_of_the_rows_is_a_name_or_known() -> None:
    """A command that is not known is shown as a function of its name, as \\log is."""
    known = {name for names, _ in templates.COMMANDS for name in names}
    known |= {"right", "end"} | {d[1:] for d in templates.DELIMITERS} | GREEK | {*templates.LETTERS}
    for op in TABLE.values():
        for text in (op.spelling.latex, *op.spelling.symbols):
            shown = set(re.findall(r"\\([A-Za-z]+)", text)) - known
            assert all(hasattr(np, name) or name in ("det", "sinh") for name in shown), op.name


TEMPLATES = {
    r"\dfrac{1}{2} x": "<mfrac><mn>1</mn><mn>2</mn></mfrac><mo>\u2062</mo><mi>x</mi>",
    r"\sqrt[3]{x}": "<mroot><mi>x</mi><mn>3</mn></mroot>",
    r"\mathbb{R}": "<mi>ℝ</mi>",
    r"\mathbf{1}": "<mn>𝟏</mn>",
    r"\hat f": '<mover><mi>f</mi><mo stretchy="false">^</mo></mover>',
    r"x_1^2": "<msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup>",
    r"x^2_1": "<msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup>",
    r"a \le b": "<mi>a</mi><mo>≤</mo><mi>b</mi>",
    r"\unknown{a}": '<mi>unknown</mi><mo rspace="0.1667em">\u2061</mo><mi>a</mi>',
    r"f(x)": "<mi>f</mi><mo>\u2061</mo>",
    r"x \log y": '<mo lspace="0.1667em">\u2062</mo><mi>log</mi><mo rspace="0.1667em">\u2061</mo>',
    r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}": "<mtr>",
}


@pytest.mark.parametrize(("text", "wanted"), TEMPLATES.items())
def test_latex_of_users_is_read(text: str, wanted: str) -> None:
    style = MathML()
    assert wanted in style.markup(style.typeset([text]))


def test_any_template_is_well_formed() -> None:
    tokens = [
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "^",
        "_",
        "&",
        "\\\\",
        "|",
        "<",
        ">",
        "a",
        "1",
        " ",
        "-",
    ]
    tokens += [f"\\{name}" for names, _ in templates.COMMANDS for name in sorted(names)[:2]]
    tokens += [r"\right", r"\end", r"\lfloor", r"\alpha", r"\other", r"\{"]
    draw = random.Random(5)
    for _ in range(2_000):
        text = "".join(draw.choices(tokens, k=draw.randrange(1, 12)))
        style = MathML()
        checked(f"<math>{style.markup(style.typeset([text]))}</math>")


def test_formulas_are_the_same_for_equal_expressions_only() -> None:
    every = [tc.to_mathml(parsed(text)) for text in FIXED]
    assert len({text.partition(">")[2] for text in every}) == len({*every}) == len(FIXED)


def test_symmetric_and_dense_variables_have_one_notation() -> None:
    assert tc.to_mathml(V.T @ V).count("⊤") == 1
    assert tc.to_mathml(S.T) == tc.to_mathml(S)
