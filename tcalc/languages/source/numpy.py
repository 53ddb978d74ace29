"""NumPy source: how it spells array operations and operators.

The walker in `program` decides what is computed in which order; a language says how each step is
written. Values are `Code`: source text, whether it needs parentheses as an operand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from string import Formatter
from typing import Any, NamedTuple

import numpy as np

from ...graph.extents import Extent, extent_from
from ...integers.affine import Affine, Congruence
from .numpy_helpers import HELPERS

ATOM, PRODUCT, SUM = 2, 1, 0


class Code(NamedTuple):
    """Source text of a value.

    Attributes
    ----------
    text : str
    level : int
        How tightly the outermost operator binds.
    weak : bool
        A number of the language, which takes the dtype of the arrays it meets.
    view : bool
        May share memory with something else.
    condition : str
        The same as truth values.
    """

    text: str
    level: int = ATOM
    weak: bool = False
    view: bool = False
    condition: str = ""


def letters(word: Sequence[int], names: dict[int, str]) -> str:
    return "".join([names.setdefault(label, chr(105 + len(names))) for label in word])


#: Operators by name: operands are ``{0}``, ``{1}``, all of them ``{operands}``, parameters
#: ``{p[0]}``, and the axes of a reduction ``{axes}``. Others are NumPy's functions of their name.
TEMPLATES = {
    **{
        name: f"special.{name}({{operands}})"
        for name in (
            "digamma", "erf", "erfc", "gammaln", "log_ndtr", "ndtr", "polygamma", "xlogy",
        )
    },
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "negative": "-{0}",
    "divide": "{0} / {1}",
    "reciprocal": "1 / {0}",
    "reciprocal0": "np.divide(1, {0}, out=np.zeros_like({0}), where={0} != 0)",
    "power": "{0} ** {1}",
    "less": "({0} < {1})",
    "less_equal": "({0} <= {1})",
    "greater": "({0} > {1})",
    "greater_equal": "({0} >= {1})",
    "equal": "({0} == {1})",
    "not_equal": "({0} != {1})",
    "where": "np.where({0}, {1}, {2})",
    # reductions and vectors
    **{name: f"{{0}}.{name}(axis={{axes}})" for name in ("max", "min", "prod")},
    "norm2": "np.sqrt(({0} * {0}).sum(axis={axes}))",
    "logsumexp": "special.logsumexp({0}, axis={axes})",
    "cumsum": "np.cumsum({0}, axis=-1)",
    "iota": "np.arange({p[0]})",
    "merge_axes": "_merge({0}, {p[0]}, {p[1]})",
    "selection": "np.asarray({0})[..., None] % {p[0]} == np.arange({p[0]})",
    "squared_distances": "np.square({0}[..., :, None, :] - {1}[..., None, :, :]).sum(-1)",
    # matrices
    "adj": "np.linalg.det({0}) * np.linalg.inv({0})",
    "cholesky": "np.linalg.cholesky({0})",
    "cholesky_pullback": "_cholesky_pullback({0}, {1})",
    "column_signs": "_signs({0})",
    "det": "np.linalg.det({0})",
    "det_sign": "np.linalg.slogdet({0})[0]",
    **dict.fromkeys(
        ("eigh", "eigh_nan", "eigh_epsilon"),
        "np.linalg.eigh(({0} + np.swapaxes({0}, -1, -2)) / 2)",
    ),
    "extractdiag": "np.diagonal({0}, {p[0]}, -2, -1).copy()",
    "extracttrian": "_extracttrian({0}, {p[0]}, {p[1]})",
    "gaps": "_gaps({0})",
    **dict.fromkeys(("inv", "inverse_definite"), "np.linalg.inv({0})"),
    "leading_rows": "np.eye({p[0]}, {p[1]})",
    **dict.fromkeys(("logdet", "logdet_definite"), "np.linalg.slogdet({0})[1]"),
    "lower_half": "np.tril(np.ones(({p[0]}, {p[0]})), -1) + np.eye({p[0]}) / 2",
    "lower_ones": "np.tril(np.ones(({p[0]}, {p[0]})))",
    "lower_trapezoid": "np.tril(np.ones(({p[0]}, {p[1]})))",
    "lower_triangle": "np.tril({0})",
    "lq": "_lq({0})",
    "makediag": "_makediag({0}, {p[0]})",
    "maketrian": "_maketrian({0}, {p[0]}, {p[1]})",
    "svd": "np.linalg.svd({0}, full_matrices=False)",
    "svd_gaps": "_svd_gaps({0})",
    "svd_reciprocal": "1 / {0}",
    "tri_inverse": "np.linalg.inv(np.tril({0}))",
    "upper_ones": "np.triu(np.ones(({p[0]}, {p[0]})), 1)",
    # functions of matrices
    **{
        f"{name}_frechet": f'_frechet("{name}", {{operands}})' for name in ("expm", "sqrtm", "logm")
    },
    "matrix_function": "_spectral({p[0]}, {operands})",
    "matrix_function_trace": "{p[0]}[0]({1}).sum(axis=-1)",
}  # fmt: skip


class NumPy:
    """NumPy source."""

    name = "NumPy"
    helpers = HELPERS
    reserved = frozenset({"np", "special", "linalg", "dtype", "floats"})
    width = 68

    # --- values ---

    def operand(self, c: Code, level: int = ATOM) -> str:
        return c.text if c.level >= level else f"({c.text})"

    def number(self, value: float) -> Code:
        text = repr(value)
        if text.strip("-") in ("inf", "nan"):
            text = text.replace("inf", "np.inf").replace("nan", "np.nan")
        return Code(text, PRODUCT if value < 0 else ATOM, weak=True)

    def array(self, value: np.ndarray) -> Code:
        dtype = f"np.{value.dtype.name}"
        if not value.size:
            return Code(f"np.zeros({value.shape}, {dtype})")
        entries = re.sub(r"\b(nan|inf)\b", r"np.\1", repr(value.tolist()))
        return Code(f"np.array({entries}, {dtype})")

    def extent(self, array: str, axis: int) -> str:
        return f"{array}.shape[{axis}]"

    def shape(self, extents: Sequence[str]) -> str:
        return f"({', '.join(extents)}{',' if len(extents) == 1 else ''})"

    # --- views ---

    def transpose(self, c: Code, perm: Sequence[int]) -> Code:
        """Axis k of the result is axis perm[k] of c."""
        if list(perm) == list(range(len(perm))):
            return c
        text = self.operand(c)
        if len(perm) == 2:
            return Code(f"{text}.T", view=True)
        return Code(f"{text}.transpose({', '.join(map(str, perm))})", view=True)

    def expand(self, c: Code, present: Sequence[bool]) -> Code:
        """New axes where nothing is present; leading ones come by themselves."""
        start = present.index(True) if True in present else len(present)
        if all(present[start:]):
            return c
        index = ", ".join([":" if p else "None" for p in present[start:]])
        return Code(f"{self.operand(c)}[{index}]", view=True)

    def diagonal(self, c: Code, word: Sequence[int], out: Sequence[int]) -> Code:
        if len(word) == 2:
            return Code(f"np.diagonal({c.text})", view=True)
        names: dict[int, str] = {}
        return Code(
            f"np.einsum('{letters(word, names)}->{letters(out, names)}', {c.text})", view=True
        )

    def broadcast(self, c: Code, shape: Sequence[str]) -> Code:
        return Code(f"np.broadcast_to({c.text}, {self.shape(shape)})", view=True)

    # --- arithmetic ---

    def multiply(self, factors: Sequence[Code]) -> Code:
        if len(factors) == 1:
            return factors[0]
        shown = [self.operand(c, PRODUCT if k == 0 else ATOM) for k, c in enumerate(factors)]
        return Code(" * ".join(shown), PRODUCT, all(c.weak for c in factors))

    def divide(self, c: Code, divisors: Sequence[str]) -> Code:
        return Code(" / ".join([self.operand(c, PRODUCT), *divisors]), PRODUCT, c.weak)

    def negate(self, c: Code) -> Code:
        return Code(f"-{self.operand(c, PRODUCT)}", PRODUCT, c.weak)

    def add(self, terms: Sequence[tuple[bool, Code]]) -> Code:
        """A sum of terms, each negated or not."""
        text = ""
        for negative, c in terms:
            shown = self.operand(c, PRODUCT)
            if text:
                text += f" - {shown}" if negative else f" + {shown}"
            else:
                text = f"-{shown}" if negative else shown
        return Code(text, SUM, all(c.weak for _, c in terms))

    def full(self, c: Code, shape: Sequence[str]) -> Code:
        return Code(f"np.full({self.shape(shape)}, {c.text}, dtype)")

    def embed(self, name: str, c: Code, out: Sequence[int], shape: Sequence[str]) -> list[str]:
        """Statements that write c on a diagonal of zeros."""
        names: dict[int, str] = {}
        places, core = letters(out, names), letters(list(dict.fromkeys(out)), names)
        return [
            f"{name} = np.zeros({self.shape(shape)}, {c.text}.dtype)",
            f"np.einsum('{places}->{core}', {name})[...] = {c.text}",
        ]

    def diag(self, c: Code) -> Code:
        return Code(f"np.diag({c.text})")

    # --- integers as indices ---

    def take(self, c: Code, keys: Sequence[Code | None]) -> Code:
        """An array indexed by integers, or by `:`."""
        shown = ", ".join([":" if key is None else key.text for key in keys])
        return Code(f"{self.operand(c)}[{shown}]", view=True)

    def segment_sum(self, c: Code, index: Code, extent: str) -> Code:
        return Code(f"_segment_sum({c.text}, {index.text}, {extent})")

    # --- contractions ---

    def sum(self, c: Code, axes: Sequence[int], ndim: int) -> Code:
        if len(axes) == ndim:
            return Code(f"{self.operand(c)}.sum()")
        shown = axes[0] if len(axes) == 1 else tuple(axes)
        return Code(f"{self.operand(c)}.sum(axis={shown})")

    def trace(self, c: Code) -> Code:
        return Code(f"np.trace({c.text})")

    def matmul(self, a: Code, b: Code) -> Code:
        return Code(f"{self.operand(a, PRODUCT)} @ {self.operand(b)}", PRODUCT)

    def inner(self, a: Code, b: Code) -> Code:
        """The sum of all products of entries."""
        return Code(f"np.vdot({a.text}, {b.text})")

    def tensordot(self, a: Code, b: Code, axes: tuple[list[int], list[int]]) -> Code:
        return Code(f"np.tensordot({a.text}, {b.text}, {axes})")

    def einsum(
        self, factors: Sequence[Code], words: Sequence[Sequence[int]], out: Sequence[int]
    ) -> Code:
        names: dict[int, str] = {}
        spec = ",".join([letters(w, names) for w in words]) + "->" + letters(out, names)
        return Code(f"np.einsum('{spec}', {', '.join([c.text for c in factors])})")

    # --- operators ---

    def template(self, name: str) -> str:
        """How an operator is written, operands as fields; empty where there is no word for it."""
        return TEMPLATES.get(name) or (f"np.{name}({{operands}})" if hasattr(np, name) else "")

    def apply(self, template: str, values: dict[str, Any], args: Sequence[Code]) -> str:
        """A template with operands in parentheses where it has none of its own."""
        parts: list[tuple[str, str]] = []
        literal = ""
        for part, field, *_ in Formatter().parse(template):
            literal += part
            if field is not None:
                parts.append((literal, field))
                literal = ""
        parts.append((literal, ""))
        text = ""
        for k, (before, field) in enumerate(parts):
            text += before
            if field.isdigit():
                after = parts[k + 1][0]
                enclosed = before.endswith(("(", ", ")) and after.startswith((")", ","))
                text += args[int(field)].text if enclosed else self.operand(args[int(field)])
            elif field == "operands":
                text += ", ".join([c.text for c in args])
            elif field:
                text += values[field]
        return text

    def level(self, text: str) -> int:
        """A name, a call or a parenthesis binds tightly."""
        head = re.match(r"[\w.]*", text)
        start = head.end() if head else 0
        if start == len(text):
            return ATOM
        depth = 0
        for k, character in enumerate(text[start:], start):
            depth += (character in "([{") - (character in ")]}")
            if depth == 0:
                return ATOM if k == len(text) - 1 and character == ")" else SUM
        return SUM

    def truth(self, text: str) -> Code:
        """Truth values, which are 1 and 0 in arithmetic."""
        bare = text[1:-1] if text[0] == "(" and self.level(text) == ATOM else text
        return Code(f"({bare}).astype(dtype)", condition=bare)

    def indicator(self, params: tuple[Any, ...], extent: Callable[[Extent], str]) -> str:
        """The array that is 1 where conditions on indices hold; `extent` writes an extent."""
        shape, guards, _ = params
        nones = [", None" * (len(shape) - axis - 1) for axis in range(len(shape))]
        names = {
            f"#{axis}": f"np.arange({extent(n)})" + (f"[:{nones[axis]}]" if nones[axis] else "")
            for axis, n in enumerate(shape)
        }

        def spelled(form: Affine) -> str:
            terms = [
                f"{c} * {names.get(n) or extent(extent_from(Affine.of(n)))}" for n, c in form.terms
            ]
            return " + ".join([*terms, str(form.constant)])

        tests = []
        for g in guards:
            if isinstance(g, Congruence):
                tests.append(f"(({spelled(g.form)}) % {g.modulus} == 0)")
            else:
                tests.append(f"({spelled(g.form)} {'==' if g.equality else '>='} 0)")
        return f"({' & '.join(tests) or f'np.ones({extent(1)})'})"

    # --- the module ---

    def function(
        self, name: str, params: list[str], sizes: list[str], integers: set[str], body: list[str],
        result: str, doc: str,
    ) -> list[str]:  # fmt: skip
        """The lines of a function; `sizes` are extents that no array has."""
        arrays = [p for p in params if p not in integers]
        lines = [f"{p} = floats({p})" for p in arrays]
        lines += [f"{p} = np.asarray({p})" for p in params if p in integers]
        if any(re.search(r"(?<!\.)\bdtype\b", line) for line in [*body, result]):
            lines.append(f"dtype = np.result_type({', '.join([*arrays, '0.0'])})")
        lines += [*body, f"return {result}"]
        head = [f"def {name}({', '.join([*params, *sizes])}):", f'    """{doc}"""']
        return [*head, *[f"    {line}" for line in lines]]

    def module(self, functions: list[list[str]]) -> str:
        text = "\n\n\n".join(["\n".join(lines) for lines in functions])
        uses = [m for m in ("linalg", "special") if re.search(rf"(?<![\w.]){m}\.", text)]
        imports = ["import numpy as np"]
        imports += [f"from scipy import {', '.join(uses)}"] if uses else []
        return "\n".join(imports) + f"\n\n\n{FLOATS}\n\n{text}\n"


FLOATS = '''
def floats(a):
    """Integers and booleans become float64, float32 stays, numbers take the dtype of arrays."""
    if isinstance(a, (bool, int, float)):
        return float(a)
    a = np.asarray(a)
    return a if a.dtype.kind == "f" else a.astype(np.float64)
'''.lstrip()

LANGUAGES: dict[str, type[NumPy]] = {"numpy": NumPy}
