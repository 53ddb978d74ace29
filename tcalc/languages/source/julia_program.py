"""Julia programs: functions, the helpers that they call, and self-checks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .carried import carried
from .infix import given_sizes
from .julia_helpers import HELPERS
from .julia_operators import LINEAR, SPECIAL
from .language import NUMBERS, Check, FunctionText, Sample
from .one_based import OneBased

KEYWORDS = {
    "abstract", "baremodule", "begin", "break", "catch", "const", "continue", "do", "else",
    "elseif", "end", "export", "false", "finally", "for", "function", "global", "if", "import",
    "in", "isa", "let", "local", "macro", "module", "mutable", "new", "outer", "primitive", "quote",
    "return", "struct", "true", "try", "type", "using", "where", "while", "ccall",
}  # fmt: skip

#: What the language's own module Base defines, as far as programs call it.
BASE = {
    "AbstractArray", "Any", "CartesianIndex", "CartesianIndices", "Dict", "Float16", "Float32",
    "Float64", "Inf", "Int", "Matrix", "NaN", "NamedTuple", "Number", "String", "Tuple", "Union",
    "abs", "abs2", "acos", "acosh", "all", "allunique", "any", "append!", "argmax", "argmin",
    "asin", "asinh", "atan", "atanh", "axes", "binomial", "cbrt", "ceil", "collect", "convert",
    "copy", "cos", "cosh", "count", "cumprod", "cumsum", "dropdims", "eachindex", "eltype",
    "enumerate", "eps", "error", "exp", "exp2", "expm1", "exponent", "factorial", "falses", "fill",
    "filter", "findfirst", "first", "fld", "floor", "foreach", "hypot", "ifelse", "in", "inv",
    "invokelatest", "isempty", "isequal", "isfinite", "isnan", "isodd", "isqrt", "iszero", "last",
    "length", "log", "log10", "log1p", "log2", "map", "mapslices", "max", "maximum", "min",
    "minimum", "mod", "ndims", "ntuple", "oftype", "one", "ones", "permutedims", "pi", "print",
    "println", "prod", "promote_type", "push!", "rand", "real", "reduce", "reshape", "reverse",
    "round", "setindex!", "sign", "sin", "sinh", "size", "sort", "sortperm", "split", "sqrt",
    "string", "sum", "tan", "tanh", "typemin", "vcat", "vec", "view", "zero", "zeros", "zip",
}  # fmt: skip

CHECK = """
# Compares {name} with what is known of it, on random data.
function {name}_check()
    Float, values = Float64, Dict{{String, Any}}()
    flat(x) = x isa Number ? [x] : vec(x)
{samples}
    found = {call}
{compared}
end

abspath(PROGRAM_FILE) == @__FILE__() && {name}_check()
"""

DIFFERENCES = """
    x, step, expected = values[{x}], 1e-6, Float64[]
    for k in 1:length(x)
        a = x isa Number ? 1.0 : [Float64(j == k) for j in reshape(1:length(x), size(x))]
        direction = {direction}
        above = {above}
        below = {below}
        append!(expected, flat((above - below) / (2 * step)))
    end
    difference = reduce(max, abs.(flat(found) - expected), init=0.0)
    difference /= reduce(max, abs.(expected), init=1.0)
    println("largest difference from central differences: ", difference)
    difference < 1e-6 || error("the derivative differs from central differences")
""".strip("\n")

SHAPES = """
    inside(tree) = tree isa Dict ? collect(Base.values(tree)) : collect(tree)
    flat_tree(tree) = tree isa Union{{Tuple, NamedTuple, Dict}} ?
                      vcat(Any[], map(flat_tree, inside(tree))...) : Any[size(tree)]
    sort(flat_tree(found)) == sort(Any[{shapes}]) || error("shapes are not as expected")
    println("shapes are as expected")
""".strip("\n")

#: What documents functions.
COMMENTS = r'(?ms)^ *""".*?"""$'


class JuliaProgram(OneBased):
    """The part of the language that writes whole functions."""

    def function(self, f: FunctionText) -> list[str]:
        arrays = [p for p, v in f.parameters.items() if not v.integral]
        given = ", ".join([*f.parameters, *f.free])
        body = [*self.bound(f), *self.scope.refused, *f.body, f"return {f.result.text}"]
        lines = [f"Float, {', '.join(arrays)} = floats({', '.join(arrays)})"] if arrays else []
        if not arrays and any(re.search(r"\bFloat\b", line) for line in body):
            lines = ["Float = Float64"]
        sliced = any(re.search(r"\w\[[^\]]*:", line) for line in body)
        head = f"{'@views ' if sliced else ''}function {f.name}({given})"
        text = [f"    {f.name}({given})", "", *described(f)]
        return ['"""', *text, '"""', head, *[f"    {line}" for line in [*lines, *body]], "end"]

    def bound(self, f: FunctionText) -> list[str]:
        return [f"{name} = size({array}, {axis + 1})" for name, (array, axis) in f.bound.items()]

    def nested(self, f: FunctionText) -> list[str]:
        sizes = [f"local {line}" for line in self.bound(f)]
        lines = [*sizes, *f.body, f"return {f.result.text}"]
        return [
            f"function {f.name}({', '.join(f.parameters)})",
            *[f"    {n}" for n in lines],
            "end",
        ]

    def module(self, functions: Sequence[list[str]]) -> str:
        self.text = _with_uses(["\n".join(lines) for lines in functions])
        return self.text

    def check(self, check: Check) -> str:
        lines = []
        for sample in check.samples:
            random = f"rand({', '.join(map(str, sample.shape))})"
            lines += [f"    {NUMBERS} = 0.5 {'.+' if sample.shape else '+'} {random}"]
            lines += [f'    values["{sample.name}"] = {each(sample)}']
        names = sorted([sample.name for sample in check.samples])
        values = [f'values["{name}"]' for name in names]
        call = f"{check.function}({', '.join([*values, *given_sizes(check.sizes)])})"
        d = check.difference
        if d is None:
            shapes = [
                f"({', '.join(map(str, s))}{',' if len(s) == 1 else ''})" for s in check.shapes
            ]
            compared = SHAPES.format(shapes=", ".join(shapes))
        else:
            name = d.direction.name
            moved = ["x {0} step * direction" if n == name else f'values["{n}"]' for n in names]
            near = f"{d.before}({', '.join([*moved, *given_sizes(d.sizes)])})"
            compared = DIFFERENCES.format(
                x=f'"{name}"',
                direction=each(d.direction),
                above=near.format("+"),
                below=near.format("-"),
            )
        text = CHECK.format(
            name=check.function, samples="\n".join(lines), call=call, compared=compared
        )
        return _with_uses([text.strip("\n")], self.text)


def _with_uses(texts: Sequence[str], known: str = "") -> str:
    """Texts behind what they use of Julia's modules and of helpers, but what is known by now."""
    helpers = [n for n in carried(texts, HELPERS, r"[\w!]+", COMMENTS) if n not in known]
    parts = [*helpers, *texts] if known else [*texts, *helpers]
    whole = "\n\n".join(parts)
    words = set(re.findall(r"[\w!]+", re.sub(r'"""[\s\S]*?"""', "", whole)))
    uses = [("LinearAlgebra", LINEAR), ("SpecialFunctions", SPECIAL)]
    using = [
        f"using {name}" for name, own in uses if own & words and f"using {name}\n" not in known
    ]
    text = "\n".join([*using, *[""] * bool(using), whole]) + "\n"
    return f"\n{text}" if known else text


def number(value: float) -> str:
    """A number as it reads back; whole ones without a point."""
    if abs(value) < 1e15 and value == int(value) and str(value) != "-0.0":
        return str(int(value))
    return repr(float(value)).replace("inf", "Inf").replace("nan", "NaN")


def quoted(text: str) -> str:
    """A string; characters without a sign of their own by their numbers."""
    shown = [
        f"\\{ch}" if ch in '\\"$' else ch if " " <= ch <= "~" else f"\\U{ord(ch):08x}"
        for ch in text
    ]
    return f'"{"".join(shown)}"'


def is_field(key: str) -> bool:
    """Is it the name of a field?"""
    return bool(re.fullmatch(r"[A-Za-z]\w*", key, re.ASCII)) and key not in KEYWORDS


def described(f: FunctionText) -> list[str]:
    """The text that documents a function."""
    shapes = []
    for name, v in f.parameters.items():
        shown = " x ".join(map(str, v.shape)) or "scalar"
        shapes.append(f"- `{name}`: {shown}{', integers from 0' if v.integral else ''}")
    formulas = [f"    {quoted(text)[1:-1]}" for text in f.formulas]
    parts = [quoted(f.doc)[1:-1].splitlines(), formulas, shapes]
    return [line for part in parts if part for line in [*part, ""]][:-1]


def each(sample: Sample) -> str:
    """The data of a sample: one matrix, or a stack of them."""
    text = f"floor.(Int, {sample.value.text})" if sample.integral else sample.value.text
    return f"stacked({NUMBERS} -> {text}, {sample.stack}, {NUMBERS})" if sample.stack else text
