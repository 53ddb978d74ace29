"""MATLAB programs: functions, the helpers that they call, and self-checks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...graph.extents import Shape
from ...support.records import record
from .carried import carried
from .infix import given_sizes
from .language import NUMBERS, Check, Code, FunctionText, Sample
from .matlab_helpers import HELPERS
from .one_based import OneBased
from .scope import unlike

KEYWORDS = [
    "break",
    "case",
    "catch",
    "classdef",
    "continue",
    "else",
    "elseif",
    "end",
    "for",
    "function",
    "global",
    "if",
    "otherwise",
    "parfor",
    "persistent",
    "return",
    "spmd",
    "switch",
    "try",
    "while",
    "do",
    "until",
    "unwind_protect",
    "unwind_protect_cleanup",
    "end_try_catch",
    "endif",
    "endfor",
    "endfunction",
    "endwhile",
    "endswitch",
    "end_unwind_protect",
    "endparfor",
    "endclassdef",
    "endenumeration",
    "endevents",
    "endmethods",
    "endproperties",
    "endspmd",
    "enumeration",
    "events",
    "methods",
    "properties",
    "__FILE__",
    "__LINE__",
]
FUNCTIONS = [
    "NaN",
    "Inf",
    "pi",
    "eps",
    "ans",
    "nargin",
    "nargout",
    "varargin",
    "varargout",
    "size",
    "numel",
    "ones",
    "zeros",
    "eye",
    "diag",
    "sum",
    "trace",
    "prod",
    "permute",
    "reshape",
    "double",
    "single",
    "cast",
    "class",
    "struct",
    "containers",
    "char",
    "true",
    "false",
    "kind",
    "flip",
    "accumarray",
    "strcmp",
    "ischar",
    "error",
    "isempty",
    "rand",
]


#: What follows on a program that checks itself.
CHECK = """
function {name}_check()
% Compares {name} with what is known of it, on random data.
{samples}
  {left} = {call};
{compared}
end
"""

DIFFERENCES = """
  step = 1e-6;
  expected = zeros(numel(found) / numel({x}), numel({x}));
  for k = 1:numel({x})
    a = zeros(size({x}));
    a(k) = 1;
    direction = {direction};
    above = {above};
    below = {below};
    expected(:, k) = (above(:) - below(:)) / (2 * step);
  end
  difference = max([0; abs(found(:) - expected(:))]) / max([1; abs(expected(:))]);
  fprintf('largest difference from central differences: %.1e\\n', difference);
  if ~(difference < 1e-6)
    error('the derivative differs from central differences');
  end
""".strip("\n")

SHAPES = """
  found = leaves(found);
  shapes = {{{shapes}}};
  if ~isequal(cellfun(@size, found, 'UniformOutput', false), shapes)
    error('shapes are not as expected');
  end
  disp('shapes are as expected');
""".strip("\n")

LEAVES = """
function found = leaves(tree)
  if isstruct(tree)
    tree = struct2cell(tree)';
  elseif isa(tree, 'containers.Map')
    tree = values(tree);
  end
  if ~iscell(tree)
    found = {tree};
    return
  end
  found = {};
  for k = 1:numel(tree)
    found = [found, leaves(tree{k})];
  end
end
"""


@record(frozen=True)
class Several(Code):
    """A tuple of results."""

    items: tuple[Code, ...] = ()


#: What calls functions, and what comments are.
CALLS = (r"\b(\w+)\(", r"(?m)^\s*%.*$")


class MatlabProgram(OneBased):
    """The part of the language that writes whole functions."""

    outputs = 1

    def dims(self, shape: Shape) -> str:
        """Extents as arguments: two of them at least."""
        return ", ".join([*self.sizes(shape), *["1"] * (2 - len(shape))])

    def row(self, items: Sequence[str]) -> str:
        return f"[{', '.join(items)}]"

    def function(self, f: FunctionText) -> list[str]:
        items = f.result.items if isinstance(f.result, Several) else ()
        taken = {*self.scope.taken, *self.scope.sizes.values()}
        stem = unlike("result", taken, "_")
        self.outputs = len(items) if len(items) > 1 else 1
        outputs = [f"{stem}{k + 1}" for k in range(len(items))] if len(items) > 1 else [stem]
        results = items if len(items) > 1 else [f.result]
        integers = [p for p, v in f.parameters.items() if v.integral]
        arrays = [p for p in f.parameters if p not in integers]
        body = [*self.bound(f), *self.scope.refused, *f.body]
        body += [f"{name} = {c.text};" for name, c in zip(outputs, results, strict=True)]
        left = f"[{', '.join(arrays)}]" if arrays[1:] else "".join(arrays)
        lines = [f"{left} = floats({', '.join(arrays)});"] if arrays else []
        lines += [f"{p} = double({p});" for p in integers]
        if reads_kind(body):
            lines.append(f"kind = {f'class({arrays[0]})' if arrays else quoted('double')};")
        given = [*f.parameters, *f.free]
        if self.scope.checks:
            first = "" if not given else f" && ischar({given[0]})"
            start = [f"if nargin == 1{first}", f"  {f.name}_check();", "  return", "end"]
            lines, given = [*start, *lines], given or ["varargin"]
        shown = f"[{', '.join(outputs)}]" if outputs[1:] else stem
        head = f"function {shown} = {f.name}({', '.join(given)})"
        help_text = [f"% {line}".rstrip() for line in described(f)]
        text = [head, *help_text, *[f"  {line}" for line in [*lines, *body]], "end"]
        return [line for part in [text, *self.scope.functions] for line in [*part, ""]][:-1]

    def bound(self, f: FunctionText) -> list[str]:
        return [f"{name} = size({array}, {axis + 1});" for name, (array, axis) in f.bound.items()]

    def nested(self, f: FunctionText) -> list[str]:
        number = len(self.scope.functions) + 1
        name = unlike(f"{self.scope.name}_{f.name.rstrip('0123456789')}", self.scope.taken, "_")
        name = f"{name}{number}"
        given, result = ", ".join(f.parameters), unlike("result", {*f.parameters, *f.free}, "_")
        lines = [*self.bound(f), *f.body, f"{result} = {f.result.text};"]
        outer = [*f.free, *(["kind"] if reads_kind(lines) else [])]
        head = f"function {result} = {name}({', '.join([*f.parameters, *outer])})"
        self.scope.functions.append([head, *[f"  {line}" for line in lines], "end"])
        return [f"{f.name} = @({given}) {name}({', '.join([*f.parameters, *outer])});"]

    def module(self, functions: Sequence[list[str]]) -> str:
        texts = ["\n".join(lines) for lines in functions]
        self.text = "\n\n".join([*texts, *carried(texts, HELPERS, *CALLS)]) + "\n"
        return self.text

    def check(self, check: Check) -> str:
        lines = []
        for sample in check.samples:
            lines += [f"  {NUMBERS} = 0.5 + rand({self.dims(sample.shape)});"]
            lines += [f"  values.{sample.name} = {each(sample)};"]
        names = sorted([sample.name for sample in check.samples])
        values = [f"values.{name}" for name in names]
        call = f"{check.function}({', '.join([*values, *given_sizes(check.sizes)])})"
        d = check.difference
        if d is None:
            shapes = [self.row(list(map(str, padded(shape)))) for shape in check.shapes]
            compared = SHAPES.format(shapes=", ".join(shapes))
        else:
            name, sizes = d.direction.name, given_sizes(d.sizes)
            moved = [f"{v} {{0}} step * direction" if v == f"values.{name}" else v for v in values]
            near = f"{d.before}({', '.join([*moved, *sizes])})"
            compared = DIFFERENCES.format(
                x=f"values.{name}",
                direction=each(d.direction),
                above=near.format("+"),
                below=near.format("-"),
            )
        left = "found" if d else f"[found{{1:{self.outputs}}}]"
        text = CHECK.format(
            name=check.function, samples="\n".join(lines), left=left, call=call, compared=compared
        )
        texts = [text.strip("\n"), *([] if d else [LEAVES.strip("\n")])]
        helpers = [n for n in carried(texts, HELPERS, *CALLS) if n not in self.text]
        return "\n" + "\n\n".join([*texts, *helpers]) + "\n"


def number(value: float) -> str:
    """A number as it reads back; whole ones without a point."""
    if value == int(value) if abs(value) < 1e15 else False:
        return "-0" if value == 0 and str(value)[0] == "-" else str(int(value))
    return repr(float(value)).replace("inf", "Inf").replace("nan", "NaN")


def quoted(text: str) -> str:
    """A string; characters without a sign of their own by their numbers."""
    parts = re.split(r"([^\x20-\x7e]+)", text)
    shown = [
        f"char([{' '.join([str(ord(ch)) for ch in part])}])"
        if k % 2
        else "'" + part.replace("'", "''") + "'"
        for k, part in enumerate(parts)
        if part or len(parts) == 1
    ]
    return shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]"


def reads_kind(lines: Sequence[str]) -> bool:
    """Do statements read the class of the program's arrays?"""
    return any(re.search(r"\bkind\b", line) for line in lines)


def is_field(key: str) -> bool:
    """Is it the name of a field?"""
    return bool(re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,62}", key)) and key not in KEYWORDS


def described(f: FunctionText) -> list[str]:
    """The help text of a function."""
    shapes = []
    for name, v in f.parameters.items():
        shown = " x ".join(map(str, v.shape)) or "scalar"
        shapes.append(f"  {name}: {shown}{', integers from 0' if v.integral else ''}")
    formulas = [f"    {line}" for text in f.formulas for line in text.splitlines()]
    return [*f.doc.splitlines(), *formulas, *shapes]


def each(sample: Sample) -> str:
    """The data of a sample: one matrix, or a stack of them."""
    text = f"floor({sample.value.text})" if sample.integral else sample.value.text
    return f"stacked(@({NUMBERS}) {text}, {sample.stack}, {NUMBERS})" if sample.stack else text


def padded(shape: Sequence[int]) -> list[int]:
    """The size of an array with these axes."""
    found = [*shape, *[1] * (2 - len(shape))]
    while len(found) > 2 and found[-1] == 1:
        found.pop()
    return found
