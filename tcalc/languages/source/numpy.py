"""NumPy source: how it spells array operations and operators."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...graph.extents import Extent, Shape, extent_from
from ...integers.affine import Affine, Congruence, Constraint
from . import infix
from .infix import letters, operand, subscripts
from .language import ATOM, NUMBERS, PRODUCT, Check, Code, FunctionText, Operator, Sample, named
from .numpy_helpers import DIFFERENCES, FLOATS, HELPERS, SHAPES
from .scope import FunctionScope

#: Operators by name, as `infix.filled` reads them: parameters are ``{p[0]}``, the axes of a
#: reduction ``{axes}``; or a function of the parameters, written, that gives the template. Others
#: are NumPy's functions of their name.
TEMPLATES: dict[str, str | Callable[..., str]] = {
    **{
        name: f"special.{name}({{operands}})"
        for name in (
            "beta", "betainc", "betaln", "digamma", "erf", "erfc", "erfcinv", "erfinv", "gamma",
            "gammainc", "gammaincc", "gammaln", "gammasgn", "iv", "ive", "jv", "kv", "log_ndtr",
            "logit", "ndtr", "ndtri", "rgamma", "stdtr", "xlogy", "yv",
        )
    },
    "spherical_jn": "special.spherical_jn(np.asarray({0}, int), {1}).astype(dtype)",
    "polygamma": "special.polygamma({0}, {1}).astype(dtype)",
    "reciprocal": "1 / {0}",
    "reciprocal0": "np.divide(1, {0}, out=np.zeros_like({0}), where={0} != 0)",
    "inverse_mills": "_inverse_mills({0}, {1})",
    "power": "{0} ** {1}",
    "less": "({0} < {1})",
    "less_equal": "({0} <= {1})",
    "greater": "({0} > {1})",
    "greater_equal": "({0} >= {1})",
    "equal": "({0} == {1})",
    "not_equal": "({0} != {1})",
    "where": "np.where({0}, {1}, {2})",
    "matrix_transpose": "{0}.T",
    # reductions and vectors
    **{name: f"{{0}}.{name}(axis={{axes}})" for name in ("max", "min", "prod")},
    "norm2": "_norm2({0}, {axes})",
    "logsumexp": "special.logsumexp({0}, axis={axes})",
    "cumsum": lambda backward: "np.cumsum({0}[..., ::-1], axis=-1)[..., ::-1]"
    if backward == "True"
    else "np.cumsum({0}, axis=-1)",
    "iota": "np.arange({p[0]})",
    "merge_axes": "_merge({0}, {p[0]}, {p[1]})",
    "selection": "np.asarray({0})[..., None] % {p[0]} == np.arange({p[0]})",
    "squared_distances": "np.square({0}[..., :, None, :] - {1}[..., None, :, :]).sum(-1)",
    # matrices
    **dict.fromkeys(("adj", "adj_frechet"), "_adj({operands})"),
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
    "gaps": "_gaps({0}, {p[0]})",
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
    "svd_gaps": "_svd_gaps({0}, {p[0]})",
    "svd_reciprocal": "_svd_reciprocal({0}, {p[0]})",
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
    reserved = frozenset(
        {"np", "special", "linalg", "dtype", "floats", "_check", *HELPERS, *dir(builtins)}
        | {*keyword.kwlist}
    )
    width = 68

    def __init__(self, scope: FunctionScope, integers: bool = False) -> None:
        self.scope = scope
        self.dtype = "np.int64" if integers else "dtype"

    # --- values ---

    def variable(self, name: str, shape: Shape) -> Code:
        return Code(name, name=True, view=True)

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

    def size(self, extent: Extent) -> Code:
        text = self.scope.extent(extent)
        plain = isinstance(extent, int) or extent.isidentifier()
        return Code(text if plain else f"({text})", name=text.isidentifier(), weak=True)

    def shape(self, shape: Shape) -> str:
        return _tuple([self.size(extent).text for extent in shape])

    def literal(self, value: Any) -> str:
        return repr(value)

    def functions(self, names: Sequence[str]) -> str:
        return _tuple(names)

    def assign(self, name: str, c: Code) -> Code:
        self.scope.lines.append(f"{name} = {c.text}")
        return replace(c, text=name, level=ATOM, name=True, condition="")

    def part(self, c: Code, index: int) -> Code:
        return Code(f"{c.text}[{index}]", view=c.view)

    # --- views ---

    def transpose(self, c: Code, perm: Sequence[int]) -> Code:
        if list(perm) == list(range(len(perm))):
            return c
        text = operand(c)
        if len(perm) == 2:
            return Code(f"{text}.T", view=True)
        return Code(f"{text}.transpose({', '.join(map(str, perm))})", view=True)

    def expand(self, c: Code, present: Sequence[bool]) -> Code:
        start = present.index(True) if True in present else len(present)
        if all(present[start:]):
            return c
        index = ", ".join([":" if p else "None" for p in present[start:]])
        return Code(f"{operand(c)}[{index}]", view=True)

    def diagonal(self, c: Code, word: Sequence[int], out: Sequence[int]) -> Code:
        if len(word) == 2:
            return Code(f"np.diagonal({c.text})", view=True)
        return Code(f"np.einsum('{subscripts([word], out)}', {c.text})", view=True)

    def broadcast(self, c: Code, shape: Shape) -> Code:
        return Code(f"np.broadcast_to({c.text}, {self.shape(shape)})", view=True)

    # --- arithmetic ---

    def multiply(self, factors: Sequence[Code]) -> Code:
        return infix.product(factors)

    def divide(self, c: Code, divisors: Sequence[Code]) -> Code:
        return infix.quotient(c, divisors)

    def negate(self, c: Code) -> Code:
        return infix.negative(c)

    def add(self, terms: Sequence[Code]) -> Code:
        return infix.total(terms)

    def full(self, c: Code, shape: Shape) -> Code:
        return Code(f"np.full({self.shape(shape)}, {c.text}, {self.dtype})")

    def embed(self, c: Code, out: Sequence[int], shape: Shape) -> Code:
        if tuple(out) == (0, 0):
            return Code(f"np.diag({c.text})")
        core, name = named(self, c).text, self.scope.fresh()
        names: dict[int, str] = {}
        places, kept = letters(out, names), letters(list(dict.fromkeys(out)), names)
        self.scope.lines += [
            f"{name} = np.zeros({self.shape(shape)}, {core}.dtype)",
            f"np.einsum('{places}->{kept}', {name})[...] = {core}",
        ]
        return Code(name, name=True)

    # --- integers as indices ---

    def take(self, c: Code, keys: Sequence[Code | None]) -> Code:
        shown = ", ".join([":" if key is None else key.text for key in keys])
        return Code(f"{operand(c)}[{shown}]", view=True)

    def segment_sum(self, c: Code, index: Code, extent: Extent) -> Code:
        return Code(f"_segment_sum({c.text}, {index.text}, {self.size(extent).text})")

    def indicator(self, shape: Shape, guards: Sequence[Constraint | Congruence]) -> Code:
        nones = [", None" * (len(shape) - axis - 1) for axis in range(len(shape))]
        names = {
            f"#{axis}": f"np.arange({self.size(n).text})"
            + (f"[:{nones[axis]}]" if nones[axis] else "")
            for axis, n in enumerate(shape)
        }
        tests = [self._test(g, names) for g in guards]
        return Code(f"({' & '.join(tests) or 'np.ones(1)'}).astype({self.dtype})")

    def _test(self, g: Constraint | Congruence, names: dict[str, str]) -> str:
        """A condition, under names of indices."""
        terms = [
            f"{c} * {names.get(n) or self.size(extent_from(Affine.of(n))).text}"
            for n, c in g.form.terms
        ]
        form = " + ".join([*terms, str(g.form.constant)])
        if isinstance(g, Congruence):
            return f"(({form}) % {g.modulus} == 0)"
        return f"({form} {'==' if g.equality else '>='} 0)"

    # --- contractions ---

    def sum(self, c: Code, axes: Sequence[int], ndim: int) -> Code:
        if len(axes) == ndim:
            return Code(f"{operand(c)}.sum()")
        shown = axes[0] if len(axes) == 1 else tuple(axes)
        return Code(f"{operand(c)}.sum(axis={shown})")

    def trace(self, c: Code) -> Code:
        return Code(f"np.trace({c.text})")

    def matmul(self, a: Code, b: Code) -> Code:
        return Code(f"{operand(a, PRODUCT)} @ {operand(b)}", PRODUCT)

    def inner(self, a: Code, b: Code) -> Code:
        return Code(f"np.vdot({a.text}, {b.text})")

    def tensordot(self, a: Code, b: Code, axes: tuple[list[int], list[int]]) -> Code:
        return Code(f"np.tensordot({a.text}, {b.text}, {axes})")

    def einsum(
        self, factors: Sequence[Code], words: Sequence[Sequence[int]], out: Sequence[int]
    ) -> Code:
        operands = ", ".join([c.text for c in factors])
        return Code(f"np.einsum('{subscripts(words, out)}', {operands})")

    # --- operators ---

    def call(self, op: Operator, args: Sequence[Code]) -> Code | None:
        own = f"np.{op.name}({{operands}})" if hasattr(np, op.name) else ""
        template = TEMPLATES.get(op.name) or own
        if callable(template):
            template = template(*op.params)
        if not template:
            return None
        axes = tuple(range(-op.core, 0))
        values = {f"p[{k}]": text for k, text in enumerate(op.params)}
        values["axes"] = str(axes[0] if op.core == 1 else axes)
        return infix.filled(template, values, args, lambda c: named(self, c))

    def constant(self, c: Code) -> Code:
        return Code(f"{operand(c)}.astype({self.dtype})")

    def scalar(self, c: Code) -> Code:
        return Code(f"{'float' if self.dtype == 'dtype' else 'int'}({c.text})", weak=True)

    def truth(self, c: Code) -> Code:
        bare = c.text[1:-1] if c.text[0] == "(" and c.level == ATOM else c.text
        return Code(f"({bare}).astype({self.dtype})", condition=bare)

    def fold(
        self, step: str, operands: tuple[Sequence[Code], ...], times: Extent, backward: bool
    ) -> Code:
        groups = [_tuple([c.text for c in group]) for group in operands]
        args = [step, *groups, self.size(times).text, str(backward), "dtype"]
        return Code(f"_fold({', '.join(args)})", view=True)

    # --- the module ---

    def result(self, c: Code, shape: Shape) -> Code:
        scalar = "" if shape else "[()]"
        if c.weak:
            return Code(f"{self.full(c, ()).text}{scalar}")
        return Code(f"np.array({c.text}){scalar}") if c.view else c

    def sequence(self, items: Sequence[Code]) -> Code:
        return Code(_tuple([c.text for c in items]))

    def mapping(self, items: Sequence[tuple[Any, Code]]) -> Code:
        shown = [self.number(k).text if isinstance(k, float) else repr(k) for k, _ in items]
        pairs = [f"{key}: {c.text}" for key, (_, c) in zip(shown, items, strict=True)]
        return Code("{" + ", ".join(pairs) + "}")

    def function(self, f: FunctionText) -> list[str]:
        integers = [p for p, v in f.parameters.items() if v.integral]
        arrays = [p for p in f.parameters if p not in integers]
        body = _body(f)
        lines = [f'"""{f.doc}"""']
        lines += [f"{', '.join(arrays)} = floats({', '.join(arrays)})"] if arrays else []
        lines += [f"{p} = np.asarray({p})" for p in integers]
        if any(re.search(r"(?<!\.)\bdtype\b", line) for line in body):
            lines.append(f"dtype = {f'{arrays[0]}.dtype' if arrays else 'np.float64'}")
        return _defined(f, [*lines, *body])

    def nested(self, f: FunctionText) -> list[str]:
        return _defined(f, _body(f))

    def module(self, functions: Sequence[list[str]]) -> str:
        texts = ["\n".join(lines) for lines in functions]
        helpers = _called(texts)
        text = "\n\n\n".join([*helpers, *texts])
        uses = [m for m in ("linalg", "special") if re.search(rf"(?<![\w.]){m}\.", text)]
        imports = ["import numpy as np"]
        imports += [f"from scipy import {', '.join(uses)}"] if uses else []
        return "\n".join(imports) + f"\n\n\n{FLOATS}\n\n{text}\n"

    def check(self, check: Check) -> str:
        lines = ["", "", "def _check(computed, before):"]
        lines += ["    rng = np.random.default_rng(0)", "    values = {}"]
        for sample in check.samples:
            shape = _tuple([str(n) for n in sample.shape])
            lines.append(f"    {NUMBERS} = rng.uniform(0.5, 1.5, {shape})")
            lines.append(f'    values["{sample.name}"] = {_each(sample)}')
        found, difference = f"computed(**values{_given(check.sizes)})", check.difference
        names = f"{check.function}, {difference.before if difference else None}"
        end = f'\n\nif __name__ == "__main__":\n    _check({names})\n'
        if difference is None:
            shapes = ", ".join([_tuple([str(n) for n in shape]) for shape in check.shapes])
            lines += [f"    found = {found}", f"    shapes = [{shapes}]"]
            return "\n".join(lines) + SHAPES + end
        lines.append(f"    found = np.asarray({found})")
        text = DIFFERENCES.format(
            x=difference.direction.name,
            direction=_each(difference.direction),
            extra=_given(difference.sizes),
        )
        return "\n".join(lines) + text + end


def _called(texts: Sequence[str]) -> list[str]:
    """The helpers that texts call, and those that these call."""
    words = set(re.findall(r"\b(\w+)\(", "\n".join(texts)))
    found = [text for name, text in HELPERS.items() if name in words]
    return found if set(found) <= set(texts) else _called([*texts, *found])


def _tuple(items: Sequence[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _body(f: FunctionText) -> list[str]:
    sizes = [f"{name} = {array}.shape[{axis}]" for name, (array, axis) in f.bound.items()]
    return [*sizes, *f.body, f"return {f.result.text}"]


def _defined(f: FunctionText, lines: Sequence[str]) -> list[str]:
    head = f"def {f.name}({', '.join([*f.parameters, *f.free])}):"
    return [head, *[f"    {line}" for line in lines]]


def _each(sample: Sample) -> str:
    """The data of a sample: one matrix, or a stack of them."""
    text = sample.value.text
    if sample.integral:
        text = f"np.floor({text}).astype(int)"
    for _ in range(sample.stack):
        text = f"np.stack([{text} for {NUMBERS} in {NUMBERS}])"
    return text


def _given(sizes: Mapping[str, int]) -> str:
    """Further arguments, behind others."""
    return "".join([f", {name}={size}" for name, size in sizes.items()])
