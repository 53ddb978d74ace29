"""Loops in three languages: what is printed is read, and texts mean what plain loops compute."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.forms.choose import chosen
from tcalc.graph.applications import application, rewritten
from tcalc.graph.nodes import Expr, Part
from tcalc.graph.normal import bare
from tcalc.languages.writing.loops import loop_of, loop_word
from tests.loop_cases import CASES, Case, data, expression, names
from tests.one_spelling import one_spelling

LANGUAGES: dict[str, tuple[Callable[[Any], str], Callable[..., Expr]]] = {
    "matrix": (str, tc.parse),
    "einsum": (partial(tc.to_einsum, computed=True), tc.parse_einsum),
    "index": (partial(tc.to_index, computed=True), tc.parse_index),
}
RNG = np.random.default_rng(0)
X, S0, A = RNG.normal(size=(4, 3)), RNG.normal(size=3), RNG.normal(size=(3, 3))
SHAPES: dict[str, Any] = {"x": ("T", "n"), "s0": "n", "A": ("n", "n"), "b": (), "d": "T"}
DATA: dict[str, Any] = {"x": X, "s0": S0, "A": A, "b": 0.7, "d": RNG.normal(size=4)}


def _forms(case: Case) -> dict[str, Expr]:
    """A loss, gradients by its first state and by its last argument, and a second derivative."""
    e = expression(case, "T")
    first, *_, last = [n for n in names(case) if n in e.variables and not e.variables[n].integral]
    gradient = tc.grad(e, first)
    return {
        "value": e,
        f"by {first}": gradient,
        f"by {last}": tc.grad(e, last),
        "second": tc.jacobian(gradient, first),
        "forward": tc.grad(e, first, mode="forward"),
    }


class Spelling:
    """Variables in the place of loops, one for all whose steps have one spelling.

    Text has one spelling of quotients and chains, in steps too, and forms are chosen of what is
    around loops only.
    """

    def __init__(self) -> None:
        self.names: dict[Any, str] = {}
        self.kept: list[Expr] = []  # so that no other has its id

    def __call__(self, e: Expr) -> Expr:
        (found,) = rewritten([bare(e)], self._without_loop)
        found = one_spelling(chosen(found))
        self.kept.append(found)
        return found

    def _without_loop(self, new: Expr, old: Expr) -> Expr:
        loop = loop_of(new) if isinstance(new, Part) else None
        if loop is None or not isinstance(new, Part):
            return new
        args = [self(arg) for arg in application(new).args]
        inside = [*loop.slices, *loop.fixed]
        fed = zip(inside, args[len(loop.states) :], strict=True)
        called = {id(v): tc.var(f"v{id(arg)}", v.shape) for v, arg in fed}
        after = rewritten(list(loop.following.values()), lambda new, old: called.get(id(old), new))
        steps = [id(self(step)) for step in after]
        first = map(id, args[: len(loop.states)])
        key = (loop_word(new), *steps, *first, loop.times, loop.backward)
        return tc.var(self.names.setdefault(key, f"loop{len(self.names)}"), new.shape)


@pytest.mark.parametrize("language", LANGUAGES)
def test_loops_and_their_derivatives_read_back(language: str) -> None:
    write, read = LANGUAGES[language]
    counts: Counter[str] = Counter()
    spelt = Spelling()
    for case in CASES:
        for name, root in _forms(case).items():
            e = bare(root)
            found = bare(read(write(e), **e.variables))
            same = found is e or write(found) == write(e) or spelt(found) is spelt(e)
            counts["same" if same else "equal"] += 1
            if found is not e:
                given = {n: a for n, a in data(case, 3).items() if n in e.variables}
                np.testing.assert_allclose(
                    found(given), e(given), rtol=1e-9, atol=1e-11, err_msg=f"{case.name}: {name}"
                )
    assert counts["same"] >= {"matrix": 0.85, "einsum": 0.95, "index": 0.95}[language] * sum(
        counts.values()
    ), counts


def test_every_language_prints_the_same_form() -> None:
    w, x, c = tc.var("w"), tc.var("x", "T"), tc.var("c")
    e = tc.fold(lambda s, i: tc.tanh(w * s + x[i]), c, "T")
    assert str(e) == "fold(s -> tanh(x[i] + w*s), c, i=0..T-1)"
    assert tc.to_einsum(e) == str(e)
    assert tc.to_index(e) == "f = fold(s -> f1 = tanh(x[i] + s*w), c, i=0..T-1)"
    back = bare(tc.grad(e, c))
    text = str(back)
    assert "i=T-1..0" in text
    assert "u=fold" in text  # what the loop reads as a whole is written once
    assert tc.parse(text, **back.variables) is back


def _tanh_loop(state: Any) -> Any:
    for row in X:
        state = np.tanh(A @ state + row)
    return state


def _powers(state: Any) -> Any:
    every = []
    for _ in range(4):
        state = A @ A @ state
        every.append(state)
    return np.stack(every)


def _nested(state: Any) -> Any:
    for row in X:
        inner = 0.7 * state
        for k in range(2):
            inner = np.sin(inner + row) + k
        state = state + inner
    return state


def _backward(state: Any) -> Any:
    for row in X[::-1]:
        state = np.sin(A @ state) + row
    return state


TEXTS = [
    ("matrix", "fold(s -> tanh(A*s + x[i]), s0, i=0..T-1)", _tanh_loop),
    ("einsum", "fold(s -> tanh(#('ij,j->i', A, s) + x[i]), s0, i=0..T-1)", _tanh_loop),
    (
        "index",
        "f[k] = fold(s -> r[j] = tanh(sum[k](A[j,k]*s[k]) + x[i][j]), s0, i=0..T-1)[k]",
        _tanh_loop,
    ),
    ("matrix", "fold_after(s -> u*s, s0, u=A*A, i=0..3)", _powers),
    ("matrix", "t1 = A*A  % fold(\nfold_after(s -> q = t1*s; q, s0, i=0..3)", _powers),
    ("einsum", "t1 = A@A; fold_after(s -> t1@s, s0, i=0..3)", _powers),
    ("matrix", "fold(s -> s + fold(r -> sin(r + x[i]) + j, b*s, j=0..1), s0, i=0..T-1)", _nested),
    ("matrix", "fold((s, r) -> (sin(A*s) + x[i], r + s), (s0, s0), i=T-1..0)[0]", _backward),
    ("einsum", "y = fold(s -> sin(A@s) + x[i], s0, i=T-1..0)\ny", _backward),
]


@pytest.mark.parametrize(("language", "text", "loop"), TEXTS)
def test_texts_mean_what_plain_loops_compute(
    language: str, text: str, loop: Callable[[Any], Any]
) -> None:
    e = LANGUAGES[language][1](text, **SHAPES)
    given = {name: DATA[name] for name in e.variables}
    np.testing.assert_allclose(e(given, **({"T": 4} if "x" not in given else {})), loop(S0))


@pytest.mark.parametrize(
    "text",
    [
        "fold(",
        "fold()",
        "fold(s)",
        "fold(s -> s, s0)",
        "fold(s -> s, s0, 4)",
        "fold(s -> s, s0, i=1..T)",
        "fold(s -> s, s0, i=0..)",
        "fold(s -> , s0, i=0..3)",
        "fold(-> s, s0, i=0..3)",
        "fold(s -> q, s0, i=0..3",
        "fold(s -> s, , i=0..3)",
        "fold(s -> s, s0, u, i=0..3)",
        "fold(A -> A, A, i=0..3)",
        "fold(s -> s + b[i], s0, i=0..T-1)",
        "fold(s -> s, s*s0, i=0..3)",
        "fold(s -> x[i][0], s0, i=0..T-1)",
        "fold(s -> s + d[i], s0, i=0..3)",
        "fold((s, r) -> (s, r), (s0, s0), i=0..3)",
        "fold((s, r) -> (s, r), (s0, s0), i=0..3)[2]",
        "fold((s, r) -> s, (s0, s0), i=0..3)[0]",
        "fold((s, s) -> (s, s), (s0, s0), i=0..3)[0]",
        "x = 1; fold(s -> s, s0, i=0..3)",
        "a; fold(s -> s, s0, i=0..3)",
        "fold(s -> " * 200 + "s" + ", s0, i=0..3)" * 200,
        "fold(s -> " * 50_000,
    ],
)
@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_that_are_no_loops_are_refused(language: str, text: str) -> None:
    with pytest.raises((tc.ParseError, tc.ShapeError)):
        LANGUAGES[language][1](f"f = {text}" if language == "index" else text, **SHAPES)


def test_texts_of_many_loops_end_at_a_limit() -> None:
    many = "".join([f"t{k} = fold(s -> 2*s, b, i=0..3)\n" for k in range(3_000)])
    with pytest.raises(tc.LimitError):
        tc.parse(f"{many}t1", b=())


@pytest.mark.parametrize("names", [*itertools.product("xyz", repeat=4)], ids="".join)
def test_undeclared_names_are_one_variable_wherever_loops_read_them(names: tuple[str, ...]) -> None:
    step, first, operand, around = names
    text = f"c = b*{around}; fold(s -> sin(s).*u + {step}[i], {first}, u=a*{operand}, i=0..n-1) + c"
    found = tc.parse(text)
    assert {v.shape for v in found.variables.values() if v.name in names} == {("n",)}
    assert found is tc.parse(text, **dict.fromkeys(set(names), "n"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fold(s -> sin(s)*a + y[i], y, i=0..m-3)", ["`y`", "(n,)", "m-2", "`y[i]`"]),
        ("fold(s -> my + y[ i ], y, my=y, i=0..3)", ["`y`", "(n,)", "4", "`y[ i ]`"]),
        ("fold(s -> s + y[i], a, i=0..-5)", ["the shape of y", "-4"]),
        ("fold(s -> A*s, x, i=0..3) + x", ["next value of state 0", "(m,)", "(n,)"]),
        ("r = fold(s -> s*b, q, i=0..n-1); q = a; r + q", ["`q` is used before"]),
    ],
)
def test_names_that_do_not_fit_in_loops_are_told_with_their_place(
    text: str, said: list[str]
) -> None:
    with pytest.raises(tc.Error) as caught:
        tc.parse(text)
    *_, line, caret = str(caught.value).split("\n")
    place = line[caret.index("^") :]
    assert all(word in str(caught.value) for word in said), caught.value
    assert "y" not in text or place.startswith("y"), caught.value


@pytest.mark.parametrize(
    ("text", "at", "said"),
    [
        ("x + fold(s -> s*x + , x, i=0..3)", " , x,", "found the end of this part of the loop"),
        ("t = fold(s -> s + x, # from x on\n x, i=0..3); sin(t'*A*x", "(t'", "never closed"),
        ("x + fold(s -> fold(r -> r + d, s, j=0..2), x, i=0..3)", "+ d", "`d` is a column"),
        ("A*fold(s -> s + x, x, i=0..2) + d", "+ d", "`A*fold(s -> s + x, x, i=0..2)` is"),
        ("fold((s, r) -> (s + r, t(r)), (x, x), i=0..3)[0]", "t(r)", "`t` is no function"),
        ("fold(s -> r = 2*s; A*r*d*x[i], x, i=0..n-1)", "*d", "`A*r` is a column"),
        ("fold(s -> s/2, x, i=0..99 until s < d)", "< d", "`d` is a column"),
        ("fold(s -> s/2, x, u=A*d, i=0..9)", "*d", "`d` is a column"),
        ("fold(s -> s/2, x,\n  i=0..9 if i < @)", "@)", "there is no `@` here"),
        ("fold(s -> s/2, x,\n i=3..9) + x", "3..9", "the range of a loop"),
        ("fold(s -> s*x[i], 1, i=0..n-1) + fold(s -> s*b[i], x, i=0..3)", "b[i]", "has no entries"),
    ],
)
def test_mistakes_in_loops_are_told_where_they_stand_in_the_whole(
    text: str, at: str, said: str
) -> None:
    with pytest.raises(tc.Error) as caught:
        tc.parse(text, x="n", A=("n", "n"), d="m", b=())
    place, message = str(caught.value).split(": ", 1)
    *_, line, caret = message.split("\n")
    row, column = map(int, place.split(":"))
    assert text.split("\n")[row - 1] == line[2:]
    assert caret.index("^") == column + 1
    assert line[column + 1 :].startswith(at), message
    assert said in message


def test_a_name_that_two_variables_have_is_refused_in_loops() -> None:
    with pytest.raises(tc.ShapeError, match=r"^1:33: y is declared twice: .*\n.*\n *\^$"):
        tc.parse("fold(s -> s*a, x, i=0..3)'*fold(s -> s*a, z, i=0..3)", x="n", z=tc.var("y", "n"),
                 a=tc.var("y"))  # fmt: skip
