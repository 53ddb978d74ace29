"""Bad input at every entry: a typed error that says what is wrong, where, what was expected."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc

x, y, z, c = tc.var("x", "n"), tc.var("y", "n"), tc.var("z", "m"), tc.var("c")
A, B = tc.var("A", ("n", "n")), tc.var("B", ("m", "n"))
T, v = tc.var("T", (2, 2, 2)), tc.var("v", 3)
S = tc.var("S", ("n", "n"), symmetric=True)
k, w = tc.var("k", "n", integer=True), tc.var("w", (1,) * 64)
f = tc.sum(tc.exp(x) * y)
g, H = tc.grad(f, x), tc.hessian(f, x)
Call = Callable[[], Any]


def declared(*args: Any, **options: Any) -> Call:
    return lambda: tc.var(*args, **options)


DECLARATIONS: list[tuple[Call, type[Exception], list[str]]] = [
    *[(declared(k), ValueError, ["identifier", repr(k)]) for k in ("", "1a", "a b", 3, None)],
    (declared("x", -1), tc.ShapeError, ["x", "extent -1 is negative"]),
    (declared("x", 1.5), TypeError, ["the shape of x", "1.5"]),
    (declared("x", None), TypeError, ["the shape of x", "None"]),
    (declared("x", (True,)), TypeError, ["True", "int nor a dimension name"]),
    (declared("x", ("n", None)), TypeError, ["None", "int nor a dimension name"]),
    (declared("x", ("n/2",)), tc.ShapeError, ["'n/2' is neither a dimension name"]),
    (declared("x", "n", odd=True), TypeError, ["unknown property 'odd'", "symmetric"]),
    (declared("x", "n", symmetric=True), tc.ShapeError, ["x is symmetric", "square", "(n,)"]),
    (declared("x", ("m", "n"), lower=True), tc.ShapeError, ["square", "(m, n)"]),
    (lambda: tc.eye(2.0), TypeError, ["eye", "2.0"]),
    (lambda: tc.eye((2, 3)), TypeError, ["eye", "(2, 3)"]),
    (lambda: tc.eye(()), TypeError, ["eye", "()"]),
    (lambda: tc.eye(-1), tc.ShapeError, ["negative"]),
    (lambda: tc.zeros(None), TypeError, ["zeros", "None"]),
    (lambda: tc.ones((2, -3)), tc.ShapeError, ["extent -3"]),
    (lambda: tc.arange(2.5), TypeError, ["arange", "2.5"]),
    (lambda: tc.grad(tc.sum(x * tc.var("x")), x), ValueError, ["declared twice", "()", "(n,)"]),
    (lambda: (x * tc.var("x"))(x=1.0), ValueError, ["x is declared twice"]),
]  # fmt: skip

CONSTANTS: list[tuple[Any, type[Exception], list[str]]] = [
    ("a", TypeError, ["'a' is text", "parse('a') reads expressions"]),
    (None, TypeError, ["real numbers", "None"]),
    (1j, TypeError, ["real numbers", "complex"]),
    (np.array([1, 2j]), TypeError, ["complex"]),
    (np.array([None]), TypeError, ["object"]),
    (np.ma.array([1.0], mask=[True]), TypeError, ["masked", "fill"]),
    ([1, [2, 3]], TypeError, ["arrays of real numbers", "inhomogeneous"]),
    ({"a": 1}, TypeError, ["object"]),
    (np.array(["2020-01-01"], dtype="M8[D]"), TypeError, ["datetime64"]),
    ([x, y], tc.TraceError, ["stack"]),
]

OPERATIONS: list[tuple[Call, type[Exception], list[str]]] = [
    (lambda: x + z, tc.ShapeError, ["`x` of shape (n,) and `z` of shape (m,)", "index -1"]),
    (lambda: tc.exp(x) * z, tc.ShapeError, ["`exp(x)` of shape (n,)", "extents n and m"]),
    (lambda: np.ones(3) * x, tc.ShapeError, ["an array of shape (3,)", "(n,)", "extents 3 and n"]),
    (lambda: x < z, tc.ShapeError, ["(n,)", "(m,)"]),
    (lambda: x @ 3, tc.ShapeError, ["at least one axis"]),
    (
        lambda: x @ B,
        tc.ShapeError,
        ["`x` of shape (n,)", "`B` of shape (m, n)", "n on the left and m on the right"],
    ),
    (lambda: A @ z, tc.ShapeError, ["(n, n)", "(m,)"]),
    (lambda: tc.dot(x, z), tc.ShapeError, ["`x` of shape (n,)", "`z` of shape (m,)"]),
    (lambda: tc.cross(x, y), tc.ShapeError, ["extent 3", "(n,)"]),
    (lambda: tc.tensordot(A, x, 2), tc.ShapeError, ["2 axes", "of 2 and 1"]),
    (lambda: tc.tensordot(A, x, -1), tc.ShapeError, ["-1 axes"]),
    (lambda: tc.tensordot(A, x, "a"), tc.ShapeError, ["two lists"]),
    (lambda: tc.tensordot(A, x, ([0], [0, 1])), tc.ShapeError, ["two lists of one length"]),
    (lambda: tc.tensordot(A, x, ([5], [0])), tc.ShapeError, ["axis 5"]),
    (lambda: tc.tensordot(A, A, ([0, 0], [0, 1])), tc.ShapeError, ["twice"]),
    (lambda: tc.sum(x, axis=1), tc.ShapeError, ["sum", "axis 1", "1 axes"]),
    (lambda: tc.sum(x, axis="a"), tc.ShapeError, ["axis a"]),
    (lambda: tc.sum(x, axis=1.0), tc.ShapeError, ["axis 1.0"]),
    (lambda: tc.sum(A, axis=(0, 0)), tc.ShapeError, ["twice"]),
    (lambda: np.sum(A, axis=5), tc.ShapeError, ["axis 5"]),
    (lambda: tc.softmax(c), tc.ShapeError, ["axis -1", "0 axes"]),
    (lambda: tc.diagonal(A, 0, 0, 0), tc.ShapeError, ["different axes", "0 and 0"]),
    (lambda: tc.diag(T), tc.ShapeError, ["vector or a matrix", "(2, 2, 2)"]),
    (lambda: tc.transpose(A, (0, 0)), tc.ShapeError, ["(0, 0)", "2 axes"]),
    (lambda: x.mT, tc.ShapeError, ["two axes"]),
    (lambda: tc.broadcast_to(x, ("n", "m")), tc.ShapeError, ["(n,)", "(n, m)"]),
    (lambda: tc.inv(B), tc.ShapeError, ["square", "(m, n)"]),
    (lambda: tc.logdet(x), tc.ShapeError, ["square", "(n,)"]),
    (lambda: tc.where(x > 0, x, z), tc.ShapeError, ["(n,)", "(m,)"]),
    (lambda: tc.exp(), TypeError, ["exp takes 1"]),
    (lambda: tc.exp(x, y), TypeError, ["exp takes 1"]),
    (lambda: x[1.5], TypeError, ["1.5"]),
    (lambda: x[..., ...], IndexError, ["ellipsis"]),
    (lambda: x[:, :], IndexError, ["2 indices", "(n,)"]),
    (lambda: x[x > 0], TypeError, ["where(mask, a, b)"]),
    (lambda: x[[True, False]], TypeError, ["where(mask, a, b)"]),
    (lambda: x[np.array([True])], TypeError, ["where(mask, a, b)"]),
    (lambda: np.exp(x, out=np.ones(3)), tc.TraceError, ["np.exp"]),
    (lambda: tc.einsum("i,i->", x, z), tc.ShapeError, ["index i", "n in `x`", "m in operand 1"]),
    (lambda: tc.einsum("ij", x), tc.ShapeError, ["'ij'", "operand 0, `x` of shape (n,)"]),
    (lambda: tc.einsum("ii->i", B), tc.ShapeError, ["index i", "m", "n"]),
    (lambda: tc.einsum("i->j", x), tc.ShapeError, ["index j", "sizes={'j'"]),
    (lambda: tc.einsum("i->ij", x, sizes={"j": -1}), tc.ShapeError, ["index j", "negative"]),
    (lambda: tc.einsum("i->ij", x, sizes={"j": 2.5}), TypeError, ["index j", "2.5"]),
    (lambda: tc.einsum("i->i", x, sizes={"i": 3}), tc.ShapeError, ["index i", "n", "3", "sizes="]),
    (lambda: tc.einsum("->ii", sizes=[3]), TypeError, ["sizes=", "mapping"]),
    (
        lambda: tc.einsum("i,j", x),
        tc.ShapeError,
        ["2 index groups for 1 operands: `x` of shape (n,)"],
    ),
    (lambda: tc.einsum("i->->i", x), tc.ParseError, ["1:4: einsum", "i->->i\n     ^", "'->'"]),
    (lambda: tc.einsum("i, j1 -> ij", x, x), tc.ParseError, ["1:5: einsum", "letters"]),
    (lambda: tc.einsum("...i...->", x), tc.ParseError, ["1:5: einsum", "one '...' in each group"]),
]

USES: list[tuple[Call, type[Exception], list[str]]] = [
    (lambda: bool(x > 0), tc.TraceError, ["where", "p & q", "fold(..., until="]),
    (lambda: f"{f:.2f}", tc.TraceError, ["'.2f'", "called with values"]),
    (lambda: x if x == y else y, tc.TraceError, ["where"]),
    (lambda: y in [x], tc.TraceError, ["where"]),
    (lambda: sorted([x, y]), tc.TraceError, ["where"]),
    (lambda: float(f), tc.TraceError, ["values", "`math`"]),
    (lambda: range(f), tc.TraceError, ["values"]),
    (lambda: np.asarray(x), tc.TraceError, ["stack"]),
    (lambda: np.array([x, y]), tc.TraceError, ["stack"]),
    (lambda: len(x), TypeError, ["(n,)", "parse('extent(n)')"]),
    (lambda: list(x), TypeError, ["extent n", "build"]),
    (lambda: iter(c), TypeError, ["scalar"]),
    (lambda: setattr(x, "shape", (3,)), AttributeError, ["immutable", "shape"]),
    (lambda: setattr(x, "name", "y"), AttributeError, ["immutable", "name"]),
    (lambda: setattr(x, "other", 1), AttributeError, ["immutable", "other"]),
    (lambda: delattr(x, "name"), AttributeError, ["immutable", "name"]),
    (lambda: x.__setitem__(0, 1.0), tc.TraceError, ["where", "stack"]),
    (lambda: tc.const(np.ones(3)).value.fill(2.0), ValueError, ["read-only"]),
]

DERIVATIVES: list[tuple[Call, type[Exception], list[str]]] = [
    (lambda: tc.grad(f, 3), TypeError, ["3 is not a variable", "x, y"]),
    (lambda: tc.grad(f, None), TypeError, ["None is not a variable"]),
    (lambda: tc.grad(f, "q"), TypeError, ["'q' is no variable of the expression", "x, y"]),
    (lambda: tc.grad(f, x + 1), TypeError, ["x + 1 is not a variable"]),
    (lambda: tc.grad(f, tc.var("x", "m")), ValueError, ["(m,)", "(n,)"]),
    (lambda: tc.grad(f, tc.var("x", "n", nonnegative=True)), ValueError, ["nonnegative"]),
    (lambda: tc.grad(x, x), tc.ShapeError, ["scalar", "(n,)", "jacobian"]),
    (lambda: tc.hessian(x, x), tc.ShapeError, ["scalar", "(n,)"]),
    (lambda: tc.grad("f", x), TypeError, ["'f'"]),
    (lambda: tc.grad((f, f), x), tc.TraceError, ["list of expressions"]),
    *[
        (lambda order=order: tc.derivative(f, x, order), ValueError, ["order", str(order), "whole"])
        for order in (-1, 1.0, True, "2", None)
    ],
    (lambda: tc.derivative(f, x, 10**9), ValueError, ["order 1000000000", "at most"]),
    *[
        (lambda mode=mode: tc.derivative(f, x, mode=mode), ValueError, ["mode", "cross-country"])
        for mode in ("rev", None, 3, [])
    ],
    (lambda: tc.hvp(f, x, z), tc.ShapeError, ["direction for x", "(m,)", "(n,)"]),
    (lambda: tc.jvp(f, x, 3), tc.ShapeError, ["direction for x", "()"]),
    (lambda: tc.jvp(f, x, None), TypeError, ["None"]),
    (lambda: tc.jvp(f, (x, y), (x,)), ValueError, ["1 directions for 2 variables"]),
    (lambda: tc.jvp(f, {"a": x}, {"b": x}), ValueError, ["keys 'a'"]),
    (lambda: tc.jvp(f, {"a": x}, x), ValueError, ["dict", "'a'"]),
    (lambda: tc.vjp(g, x, z), tc.ShapeError, ["u has shape (m,)", "(n,)"]),
    (lambda: f.subs({x: z}), tc.ShapeError, ["x", "(n,)", "(m,)"]),
    (lambda: f.subs({x: "a"}), TypeError, ["'a'"]),
    (lambda: f.subs({3: x}), TypeError, ["3 is not a variable"]),
    (lambda: f.subs(None), TypeError, ["mapping", "None"]),
    (lambda: f.subs({tc.var("x", "m"): z}), ValueError, ["(m,)", "(n,)"]),
    (lambda: tc.check(f, ()), ValueError, ["needs a variable"]),
    (lambda: tc.check(f, x, 5), ValueError, ["order 5", "order 1 to 4 can be checked"]),
    (lambda: tc.check(f, x, 1.0), ValueError, ["order 1.0"]),
    (lambda: tc.check(tc.log(-1 - c * c), c), tc.Error, ["finite"]),
    (lambda: tc.explain(f, x, order=-1), ValueError, ["order -1"]),
    (lambda: tc.explain(f, x, n=-1), TypeError, ["n is a dimension", "-1"]),
    (lambda: tc.explain(f, x, n="a"), TypeError, ["n is a dimension", "'a'"]),
    (lambda: tc.explain(f, x, q=3), TypeError, ["q is no dimension"]),
    *[
        (lambda show=show, e=e: show(e), TypeError, [type(e).__name__])
        for show in (
            tc.explain,
            tc.compress,
            tc.simplify,
            tc.to_text,
            tc.to_latex,
            tc.to_mathml,
            tc.to_einsum,
        )
        for e in (3, "a", None)
    ],
    (lambda: tc.simplify((f, f)), TypeError, ["tuple"]),
    *[
        (lambda show=show: show((f, ["a"])), TypeError, ["str"])
        for show in (tc.explain, tc.compress, tc.to_text, tc.to_latex, tc.to_mathml, tc.to_einsum)
    ],
    (lambda: tc.to_code(3), TypeError, ["int"]),
    *[(lambda k=k: tc.to_code(f, k), ValueError, ["numpy"]) for k in ("cobol", None, 3, [])],
    *[
        (lambda name=name: tc.to_code(f, name=name), ValueError, ["identifier"])
        for name in ("", "a b", "lambda", "np", 3, "f():\n    import os\ndef g")
    ],
]

DATA: list[tuple[Any, dict[str, Any], type[Exception], list[str]]] = [
    (f, {}, TypeError, ["x is missing", "(n,)"]),
    (f, {"x": [1.0]}, TypeError, ["y is missing"]),
    (f, {"x": [1.0, 2.0], "y": [1.0]}, tc.ShapeError, ["dimension n", "y", "x", "2", "1"]),
    (f, {"x": 1.0, "y": 2.0}, tc.ShapeError, ["x", "()", "(n,)"]),
    (f, {"x": [[1.0]], "y": [2.0]}, tc.ShapeError, ["x", "(1, 1)", "(n,)"]),
    (f, {"x": [1.0], "y": [2.0], "n": 3}, tc.ShapeError, ["dimension n", "3", "1"]),
    (v * 2, {"v": [1.0, 2.0]}, tc.ShapeError, ["v has extent 2 at index 0, expected 3"]),
    (A @ x, {"A": np.ones((2, 3)), "x": [1.0, 2.0]}, tc.ShapeError, ["A", "extent 3", "index 1"]),
    (f, {"x": ["a"], "y": [1.0]}, TypeError, ["x", "real numbers"]),
    (f, {"x": [1j], "y": [1.0]}, TypeError, ["x is complex"]),
    (f, {"x": [None], "y": [1.0]}, TypeError, ["x", "object"]),
    (f, {"x": [10**400], "y": [1.0]}, TypeError, ["x", "object"]),
    (f, {"x": [1, [2]], "y": [1.0]}, TypeError, ["x is not an array of numbers"]),
    (f, {"x": np.ma.array([1.0]), "y": [1.0]}, TypeError, ["x is a masked array"]),
    (f, {"x": x, "y": [1.0]}, TypeError, ["x is an expression"]),
    (f, {"x": np.zeros(1, dtype=[("a", float)]), "y": [1.0]}, TypeError, ["x is of dtype"]),
    (tc.sum(tc.var("n", "n")), {"n": 3}, tc.ShapeError, ["n has shape ()"]),
    (tc.eye("n"), {}, TypeError, ["extent of dimension n", "n="]),
    *[(tc.eye("n"), {"n": k}, TypeError, ["n is a dimension"]) for k in (-1, 2.5, True, "3", [1])],
    (S, {"S": [[1.0, 2.0], [3.0, 4.0]]}, ValueError, ["S is declared symmetric", "check=False"]),
    (S, {"S": [[1.0, np.nan], [3.0, 4.0]]}, ValueError, ["S is declared symmetric", "check=False"]),
    (tc.inv(A), {"A": np.zeros((2, 2))}, tc.LinAlgError, ["ingular"]),
    (f, {"x": [1.0], "z": [2.0]}, TypeError, ["y is missing", "not used: z"]),
    *[
        (2 * k, {"k": data}, TypeError, ["k is an integer variable", word])
        for data, word in (
            ([np.inf], "inf"), ([1e30], "1e+30"), ([np.nan], "nan"), ([2.5], "2.5"),
            (np.array([2**64 - 1], np.uint64), "18446744073709551615"), (["a"], "<U1"),
            (np.array([np.inf], np.float16), "inf"), ([2**70], "beyond 64 bits"),
        )
    ],
    (x - x, {}, TypeError, ["dimension n is not known: pass n="]),
    (tc.var("v", "2*n") ** 2, {"v": np.zeros(3)}, tc.ShapeError, ["3 at 0; 3 is 2*n for no whole"]),
    (tc.var("v", "n+1") ** 2, {"v": []}, tc.ShapeError, ["v has extent 0 at 0; 0 is n+1 for no"]),
    (tc.max(x), {"x": []}, tc.ShapeError, ["max of x", "(0,)"]),
    (tc.min(B, axis=1), {"B": np.ones((2, 0))}, tc.ShapeError, ["min of B", "(2, 0)"]),
    (tc.grad(tc.max(x), x), {"x": []}, tc.ShapeError, ["max of x", "(0,)"]),
    (tc.zeros((1,) * 65), {}, tc.ShapeError, ["(1, 1,", "65 axes", "64"]),
    (tc.max(w[None] + tc.ones((2,) * 65)), {"w": np.ones(w.shape)}, tc.ShapeError, ["65 axes"]),
    *[(tc.eye("n"), {"n": n}, tc.ShapeError, [f"({n}, {n})"]) for n in (2**31, 10**20)],
    (tc.zeros((0, 10**20)), {}, tc.ShapeError, ["(0, 100000000000000000000)"]),
    (tc.eye("n"), {"n": 10**8}, tc.MemoryLimitError, ["71.1 PiB needed", "available", "embed"]),
]  # fmt: skip

OPTIONS: list[tuple[Call, type[Exception], list[str]]] = [
    (lambda: f(3), TypeError, ["keyword", "mapping"]),
    (lambda: f({"x": [1.0]}, {"y": [1.0]}), TypeError, ["one mapping"]),
    (lambda: tc.compile(None), TypeError, ["None"]),
    (lambda: tc.compile("f"), TypeError, ["'f'"]),
    (lambda: tc.compile(f, backend="gpu"), ValueError, ["'gpu'", "'numpy'"]),
    (lambda: tc.compile(f, memory_limit="lots"), ValueError, ["'lots'", "2GiB"]),
    *[
        (lambda limit=limit: tc.compile(f, memory_limit=limit), ValueError, [repr(limit), "2GiB"])
        for limit in (True, 0, -5, 1.5, np.inf, np.nan, "inf", "nan", "-5MB", "GB", "", [], b"5")
    ],
    (lambda: tc.compile(f, backend=[]), ValueError, ["backend []", "'numpy'"]),
    (lambda: tc.compile(f, check="no"), TypeError, ["check=", "'no'"]),
    (lambda: tc.compile(f, structured=1), TypeError, ["structured=", "1"]),
    *[(lambda a=a: tc.compile(f, args=a), TypeError, ["args="]) for a in (3, "xy", x, (3,), [f])],
    (lambda: tc.compile(f, args=("x", x)), TypeError, ["args= has x twice"]),
    (lambda: tc.compile(f, args=("zzz",)), TypeError, ["args= has zzz", "(n, x, y)"]),
    (lambda: tc.compile(tc.exp(tc.var("rate")), args=("rat",)), TypeError, ["mean rate?"]),
    (lambda: tc.compile(H, args=("zzz",), structured=True), TypeError, ["args= has zzz"]),
    *[(lambda d=d: tc.compile(f, data=d), TypeError, ["data="]) for d in (3, [x], "x", {3: [1.0]})],
    (lambda: tc.compile(f, data={"x": [1.0], x: [1.0]}), TypeError, ["x stands twice"]),
    (lambda: tc.compile(f, data={"x": 3}), tc.ShapeError, ["x has shape ()", "(n,)"]),
    (lambda: tc.compile(f, data={"n": -3}), TypeError, ["n is a dimension", "-3"]),
    (lambda: tc.compile(f, data={"x": [1.0], "y": [1.0, 2.0]}), tc.ShapeError, ["n", "y", "x"]),
    (lambda: f({3: [1.0]}), TypeError, ["names or variables", "3"]),
    (lambda: f({"x": [1.0], x: [1.0]}), TypeError, ["x stands twice"]),
    *[
        (lambda s=s: tc.compile(f).plan_for(x=s), kind, ["the shape of x", word])
        for s, kind, word in (
            (-3, tc.ShapeError, "-3"), ((-3,), tc.ShapeError, "-3"), ((2.5,), TypeError, "2.5"),
            ("a", TypeError, "'a'"), (("a",), TypeError, "'a'"), (None, TypeError, "None"),
            (True, TypeError, "True"), (np.ones(3), TypeError, "1.0"),
        )
    ],
    (lambda: tc.compile(f).plan_for(x=(3, 4)), tc.ShapeError, ["x has shape (3, 4)", "(n,)"]),
    (lambda: tc.compile(f).plan_for(q=2), TypeError, ["q is no variable", "x, y, n"]),
    (lambda: tc.compile(f).plan_for(n=-2), TypeError, ["n is a dimension", "-2"]),
    (lambda: tc.compile(H, structured=True).plan_for(q=2), TypeError, ["q is no variable"]),
    (lambda: tc.compile(tc.compress(H)), TypeError, ["structured=True"]),
    (lambda: tc.compile(f, data={"x": [1j]}), TypeError, ["x is complex"]),
    (lambda: tc.compile(f, data={"x": [1.0]})(x=[1.0], y=[1.0]), TypeError, ["bound by data="]),
    (lambda: tc.compile(f)([1.0], [1.0]), TypeError, ["2 positional"]),
    (lambda: tc.compile(f, args=("x",))([1.0], x=[1.0]), TypeError, ["x is passed by position"]),
    (lambda: tc.compile(H, memory_limit="1MB")(x=np.ones(1000), y=np.ones(1000)),
     tc.MemoryLimitError, ["7.6", "MiB needed", "allowed", "largest step"]),
    (lambda: tc.compile(f).plan_for(x=(3,), y=(4,)), tc.ShapeError, ["dimension n", "y", "x"]),
    (lambda: tc.compile(H, structured=True)(x=[1.0], y=[1.0]) @ [1.0, 2.0], tc.ShapeError,
     ["(1, 1)", "(2,)", "(1,)"]),
]  # fmt: skip

TEXTS: list[tuple[Any, dict[str, Any], type[Exception], list[str]]] = [
    (3, {}, TypeError, ["str, not int"]),
    (None, {}, TypeError, ["NoneType"]),
    (b"x", {}, TypeError, ["bytes"]),
    ("x", {"x": 1.5}, TypeError, ["x is declared by a shape", "float"]),
    ("x", {"x": f}, TypeError, ["x is declared", "not by"]),
    ("x", {"x": ("n", None)}, TypeError, ["the shape of x", "None"]),
    ("x", {"x": "n n"}, tc.ShapeError, ["'n n'"]),
    ("x", {"a b": ()}, ValueError, ["'a b'"]),
    ("x", {"z": 3.5}, TypeError, ["z is declared"]),
]

PLACES = [
    # text, declarations, class, line, column, words; the caret stands under the place
    ("__import__('os')", {}, tc.ParseError, 1, 12, ["expected", "found `'`"]),
    ("__import__(x)", {}, tc.ParseError, 1, 1, ["unknown function `__import__`"]),
    ("eval(x)", {}, tc.ParseError, 1, 1, ["unknown function `eval`"]),
    ("x.__class__", {}, tc.ParseError, 1, 2, ["'.'"]),
    ("x; import os", {}, tc.ParseError, 1, 1, ["not used"]),
    ("lambda x: x", {}, tc.ParseError, 1, 8, ["operator"]),
    ("x +\n (y * z)", {}, tc.ParseError, 1, 4, ["end of the line"]),
    ("(x +\n  y * $)", {}, tc.ParseError, 2, 7, ["'$'"]),
    ("(\n x +\n z)", {"x": "n", "z": "m"}, tc.ShapeError, 2, 4, ["`x`", "(n,)", "`z`", "(m,)"]),
    ("x'*A*y", {"x": "n", "A": ("m", "n"), "y": "m"}, tc.ShapeError, 1, 3, ["`x'`", "`A`"]),
    ("9^9^9", {}, tc.ParseError, 1, 4, ["(a^b)^c"]),
    ("A^1000001", {}, tc.ParseError, 1, 2, ["1000000"]),
    ("A^1e300", {}, tc.ParseError, 1, 2, ["1000000"]),
    ("1" * 400, {}, tc.ParseError, 1, 1, ["too large"]),
    ("eye(" + "9" * 30 + ")", {}, tc.ParseError, 1, 5, ["size of eye"]),
]  # fmt: skip


def raised(call: Call, kind: type[Exception], words: list[str]) -> Exception:
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert not any(word in message for word in ("object at 0x", "NoneType' object", "__getitem__"))
    return caught.value


def ids(rows: list[Any]) -> list[str]:
    return [str(k) for k in range(len(rows))]


CALLS = DECLARATIONS + OPERATIONS + USES + DERIVATIVES + OPTIONS


@pytest.mark.parametrize(("call", "kind", "words"), CALLS, ids=ids(CALLS))
def test_python(call: Call, kind: type[Exception], words: list[str]) -> None:
    raised(call, kind, words)


@pytest.mark.parametrize(("value", "kind", "words"), CONSTANTS, ids=ids(CONSTANTS))
def test_constants(value: Any, kind: type[Exception], words: list[str]) -> None:
    raised(lambda: tc.const(value), kind, words)
    if not isinstance(value, np.ma.MaskedArray | dict | list):
        raised(lambda: x + value, kind, words)
        raised(lambda: value * x, kind, words)


@pytest.mark.parametrize(("e", "data", "kind", "words"), DATA, ids=ids(DATA))
def test_data(e: Any, data: dict[str, Any], kind: type[Exception], words: list[str]) -> None:
    raised(lambda: e(**data), kind, words)
    raised(lambda: e(data), kind, words)
    raised(lambda: tc.compile(e)(**data), kind, words)


@pytest.mark.parametrize(("text", "names", "kind", "words"), TEXTS, ids=ids(TEXTS))
def test_declared_text(text: Any, names: Any, kind: type[Exception], words: list[str]) -> None:
    raised(lambda: tc.parse(text, **names), kind, words)


@pytest.mark.parametrize(
    ("text", "names", "kind", "line", "column", "words"), PLACES, ids=ids(PLACES)
)
def test_place_in_text(
    text: str, names: Any, kind: type[Exception], line: int, column: int, words: list[str]
) -> None:
    problem = raised(lambda: tc.parse(text, **names), kind, words)
    first, shown, caret = str(problem).split("\n")
    assert first.startswith(f"{line}:{column}: ")
    assert caret == " " * (1 + column) + "^"
    assert text.split("\n")[line - 1].startswith(shown[2:])


def test_errors_are_one_family_and_travel() -> None:
    for kind in (tc.ParseError, tc.ShapeError, tc.TraceError, tc.LinAlgError, tc.MemoryLimitError):
        assert issubclass(kind, tc.Error)
    problem = raised(lambda: tc.parse("x +"), tc.ParseError, [])
    for other in (pickle.loads(pickle.dumps(problem)), copy.copy(problem)):
        assert type(other) is tc.ParseError
        assert (str(other), other.line, other.column) == (str(problem), 1, 4)
