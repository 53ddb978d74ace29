"""A file of C: its header, functions, and what these call."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from ...graph.nodes import Var
from ...support.c_text import SHARED
from ...support.c_text import routines as shared
from ...support.records import record
from .c_blocks import by_blocks
from .c_fusion import Fusion, live, localised
from .c_header import header_text
from .c_histories import kept_in_place
from .c_memory import narrowed, reused
from .c_nests import (
    Array,
    Call,
    Line,
    Node,
    Statement,
    atom,
    flat,
    lettered,
    lines,
    replaced,
    texts,
)
from .c_rows import by_rows_together, turned_ahead
from .c_schedule import in_place_last
from .c_tiles import by_parts
from .c_values import Value, value
from .c_words import FLOATS, KEYWORDS, LIBRARY, OWN
from .c_writer import Writer
from .language import FunctionText

#: Files of `routines/`, of which later ones call earlier ones; some of them plans share.
ROUTINES = (
    "numbers.c", "exponentials.c", "decays.c", "quick.c", "special.c", "bessel.c", "blas.c",
    "pieces.c", "products.c", "triangles.c", "definite.c", "congruences.c", "windows.c",
    "correlations.c", "rows.c", "factors.c", "spectral.c", "matrices.c", "roots.c", "minors.c",
    "differences.c",
)  # fmt: skip


@cache
def loaded(files: Sequence[str]) -> dict[str, str]:
    """The functions in files of `routines/`, by name; those of one name together."""
    folder = Path(__file__).with_name("routines")
    found: dict[str, str] = {}
    for name in files:
        own = name not in SHARED
        text = (folder / name).read_text(encoding="utf-8") if own else shared(name)
        for part in re.split(r"\n\n(?=/\*|static|#|template)", text.strip()):
            named = _NAMED.search(part)
            if named:
                key = next(filter(None, named.groups()))
                found[key] = "\n\n".join(filter(None, [found.get(key), part.strip()]))
    return found


_NAMED = re.compile(
    r"^(?:template <[^>]*>\s+)?(?:(?:static|FUNCTION) [\w ]*?(\w+)\(|struct (\w+)|#define (\w+) )",
    re.MULTILINE,
)


def routines() -> dict[str, str]:
    """The functions that programs carry along, by name, in an order in which they can stand."""
    return loaded(ROUTINES)


RESERVED = frozenset([*KEYWORDS, *LIBRARY, *FLOATS, *OWN, *routines()])


def leaves(result: Value) -> list[tuple[str, Value]]:
    """Results with their names."""
    if not result.labels and not result.parts:
        return [("out", result)]
    found: list[tuple[str, Value]] = []
    for label, part in zip(result.labels, result.parts, strict=True):
        for inner, leaf in leaves(part):
            found.append((f"out_{label}{inner.removeprefix('out')}", leaf))
    return found


@record(frozen=True)
class Prepared:
    """What a function is printed from: its statements, fused, and what they name.

    Attributes
    ----------
    f : FunctionText
    nodes : list of Node
    results : list of (str, Value)
        Under the names of the parameters that they go to.
    stored : list of Array
        What the workspace holds.
    sizes : list of str
        The extents that are parameters.
    about : list of str
        What is said of its results: formulas, and how arrays lie.
    """

    f: FunctionText
    nodes: list[Node]
    results: list[tuple[str, Value]]
    stored: list[Array]
    sizes: list[str]
    about: list[str]

    @property
    def outputs(self) -> list[str]:
        return [out for out, _ in self.results]

    def effect(self, refused: Sequence[str], *failures: str) -> str:
        """What a call does, and what its status tells, given the statements that refuse data."""
        fails = any(isinstance(node, Call) and node.status for node in flat(self.nodes))
        found = [*(["1 where a factorisation fails"] if fails else []), *failures]
        if refused:
            found.append(f"{OUT_OF_RANGE} where an index would be out of range")
        *others, last = ["0", *found]
        status = f"{', '.join(others)}, or {last}" if others else last
        return f"Writes {', '.join(self.outputs)}; returns {status}."


def prepared(language: Writer, f: FunctionText, alone: bool = True) -> Prepared:
    """A function's statements as they run: nests fused, temporaries in little memory.

    Loops of a function that runs `alone` take their turns one by one: what each of them needs may
    lie where the one before had it. Functions of numbers stand in loops that have vectors of them.
    """
    scope = language.scope
    for v in f.parameters.values():
        language.shape(v.shape)
    statements = [line for line in f.body if isinstance(line, Statement)]
    arrays = {a.name: a for s in statements for a in s.made}
    nodes = [node for s in in_place_last(statements, arrays) for node in s.nodes]
    results, names = [], dict[str, str]()
    taken = {*scope.taken, *scope.sizes.values(), *names}
    for label, leaf in leaves(value(f.result)):
        out = label
        while out in taken:
            out += "_"
        taken.add(out)
        results.append((out, leaf))
        if leaf.shape:
            names[leaf.text] = out
            arrays[out] = replace(arrays.pop(leaf.text), name=out)
        else:
            nodes.append(Line(f"*{out}", "=", leaf.entry(()).text))
    outputs = [out for out, _ in results]
    nodes = live(replaced(nodes, names), outputs)
    if alone:
        most = max([len(a.shape) for a in arrays.values()], default=0)
        nodes = kept_in_place(nodes, arrays, outputs, language.index(most + 1), scope.fresh)
    nodes = _fused(nodes, arrays, outputs, alone)
    if alone:
        nodes = narrowed(nodes, arrays, outputs)
        split = by_rows_together(nodes, arrays)
        # What stood in a loop with a product may be one with what follows.
        nodes = nodes if split == nodes else _fused(split, arrays, outputs, alone)
        nodes = turned_ahead(nodes, arrays, taken, language.index(2), language.length)
        nodes = by_parts(nodes, arrays, outputs, language.length)
        nodes = by_blocks(nodes, arrays, {*taken, *scope.variables, *outputs})
    nodes = reused(nodes, arrays, outputs)
    nodes = lettered(nodes, {*f.parameters, *scope.sizes.values(), *outputs})
    declared = {line.written for line in flat(nodes) if isinstance(line, Line) and line.kind}
    named = words_of(texts(nodes))
    stored = [a for n, a in arrays.items() if n in named - declared and n not in outputs]
    about = [f"{p}: {_shown(language.shape(v.shape))}" for p, v in f.parameters.items()]
    about += [f"{out}: {_shown(leaf.shape)}" for out, leaf in results]
    shown = [f"{out} = {text}" for out, text in zip(outputs, f.formulas, strict=False)]
    sizes = sorted(scope.sizes.values())
    comment = [*shown, f"Row by row: {'; '.join(about)}."]
    return Prepared(f, nodes, results, stored, sizes, comment)


def _fused(
    nodes: list[Node], arrays: Mapping[str, Array], outputs: Sequence[str], alone: bool
) -> list[Node]:
    """Nests fused, entries that one turn of a loop fills and reads as numbers."""
    return live(localised(Fusion(arrays, alone).fused(nodes), arrays, outputs), outputs)


def words_of(texts: Iterable[str]) -> set[str]:
    return set(re.findall(r"\w+", "\n".join(texts)))


def _shown(shape: Sequence[str]) -> str:
    return " x ".join([atom(n) for n in shape]) or "number"


def parameter(name: str, v: Var) -> str:
    kind = "ptrdiff_t" if v.integral else "real"
    return f"const {kind} *restrict {name}" if v.shape else f"{kind} {name}"


def storage_text(arrays: Sequence[Array]) -> tuple[list[str], str]:
    """Pointers into the workspace, and how many bytes it takes."""
    found, totals = list[str](), list[str]()
    behind = "work"
    for kind in ("ptrdiff_t", "real"):
        chosen = [a for a in arrays if a.kind == kind]
        for a in chosen:
            first = found and a is chosen[0]
            start = f"({kind} *)({behind})" if first else behind
            found.append(f"{kind} *{a.name} = {start};")
            behind = f"{a.name} + {a.size}"
        if chosen:
            size = " + ".join([a.size for a in chosen])
            totals.append(f"(size_t)({size}) * sizeof({kind})")
    return found, " + ".join(totals) or "0"


def headed(head: str, parameters: Sequence[str], end: str = "") -> list[str]:
    """The head of a function, or its call, on lines that are not too long."""
    one = f"{head}({', '.join(parameters)}){end}"
    if len(one) <= 100:
        return [one]
    lines_, line = [], f"{head}("
    for k, p in enumerate(parameters):
        shown = p + (f"){end}" if k == len(parameters) - 1 else ", ")
        if len(line) + len(shown) > 100:
            lines_.append(line.rstrip())
            line = "    "
        line += shown
    return [*lines_, line]


def comment(texts_: Sequence[str]) -> list[str]:
    """A comment that nothing in its text ends."""
    safe = [re.sub(r"[^ -~]", " ", t).replace("*/", "* /").replace("??", "? ?") for t in texts_]
    safe = [t.replace("/*", "/ *").replace("\\", "") for t in safe]
    shown = [line for t in safe for line in textwrap.wrap(t, 94)]
    return [*[f"{'/*' if k == 0 else '  '} {t}" for k, t in enumerate(shown[:-1])],
            f"{'  ' if shown[1:] else '/*'} {shown[-1]} */"]  # fmt: skip


#: What a function returns where it would read outside of an array.
OUT_OF_RANGE = 3
_INCLUDES = """
/* Fast with -O3 -march=native -fno-math-errno -fopenmp-simd; the last one lets sums be added up in
   any order. */
#include <float.h>
#include <math.h>
#include <string.h>
#ifdef CBLAS /* products of matrices by a library: -DCBLAS -lopenblas */
#include <cblas.h>
#ifdef SINGLE
#define CBLAS_GEMM cblas_sgemm
#define CBLAS_SYRK cblas_ssyrk
#else
#define CBLAS_GEMM cblas_dgemm
#define CBLAS_SYRK cblas_dsyrk
#endif
#endif

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#endif
""".strip()


def module_text(functions: Sequence[list[str]], sizes: Iterable[int] = (), file: str = "") -> str:
    """The file, fast at some sizes: its header, then what is behind it.

    The header's guard is named after the `file`, or else after the function.
    """
    bodies = ["\n".join(lines_) for lines_ in functions]
    helpers = called(bodies, routines())
    (name,) = re.findall(r"^int (\w+)\(", bodies[0], re.MULTILINE)
    extra = ["stdlib.h"] if "malloc(" in bodies[-1] else []
    extra += ["complex.h"] if "complex" in words_of(helpers) else []
    more = "".join([f"\n#include <{header}>" for header in extra])
    header = header_text(file or name, functions)
    vectors = _hints("\n".join(bodies)) + _vectors(
        "\n".join([*helpers, *bodies]), min(sizes, default=REGISTER) >= REGISTER
    )
    parts = [header, _INCLUDES + vectors + more, *helpers, *bodies]
    return "\n\n".join(parts) + "\n"


#: Parts for all extents but the few whose loops compilers write out.
_HINTS = """
#if defined(__GNUC__)
#define SELDOM __attribute__((cold, noinline))
#else
#define SELDOM
#endif"""


def _hints(text: str) -> str:
    return _HINTS if "static SELDOM" in text else ""


#: Functions of numbers of which GNU's library has vectors, and those since version 2.35.
VECTORS = (
    ("exp", "log", "sin", "cos", "pow"),
    (
        "expm1", "exp2", "log1p", "log2", "log10", "tan", "asin", "acos", "atan", "sinh", "cosh",
        "tanh", "erf", "erfc", "cbrt", "atan2", "hypot",
    ),
)  # fmt: skip
PAIRS = {"pow", "atan2", "hypot"}
#: What stands before them. Compilers take half of a register where it can be had whole, which suits
#: few entries; these functions take most of a loop's time, and as long for twice as many.
VECTORISED = (
    "#if defined(__AVX512DQ__)",
    '#pragma GCC target("prefer-vector-width=512")',
    "#endif",
)


#: Numbers in a register: loops of fewer entries would call functions of one number.
REGISTER = 8


def _vectors(text: str, wide: bool) -> str:
    """Declarations by which loops call functions of vectors, of `wide` registers."""
    called_ = set(re.findall(r"\b\w+(?=\()", text))
    found = [
        [f"VECTOR double {f}({'double, double' if f in PAIRS else 'double'});" for f in row]
        for row in [[f for f in row if f in called_] for row in VECTORS]
    ]
    if not any(found):
        return ""
    later = ["#if __GLIBC_PREREQ(2, 35)", *found[1], "#endif"] if found[1] else []
    known = "defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__) && defined(__x86_64__)"
    head = [f"\n#if {known}", '#define VECTOR __attribute__((simd("notinbranch")))']
    return "\n".join([*head, *(VECTORISED if wide else ()), *found[0], *later, "#endif"])


def number_function(f: FunctionText, name: str) -> list[str]:
    """A function of one number, which routines are handed."""
    statements = [line for line in f.body if isinstance(line, Statement)]
    found = value(f.result).entry(()).text
    body = lines(live([n for s in statements for n in s.nodes], sorted(words_of([found]))))
    body.append(f"return {found};")
    (given,) = f.parameters
    body = body if given in words_of(body) else [f"(void){given};", *body]
    return [f"static real {name}(real {given})", "{", *[f"    {line}" for line in body], "}"]


def called(texts_: Sequence[str], known: Mapping[str, str]) -> list[str]:
    """The routines that texts call, and those that these call."""
    needed = set[str]()
    # Formulas in comments call nothing.
    waiting = re.sub(r"/\*.*?\*/", "", "\n".join(texts_), flags=re.DOTALL)
    while new := _called(waiting) & (known.keys() - needed):
        needed |= new
        waiting = "\n".join([known[name] for name in new])
    return [text for name, text in known.items() if name in needed]


def _called(text: str) -> set[str]:
    """What a text calls, launches, or names in capitals."""
    found = re.findall(r"\b\w+(?=\()|[A-Z_]{3,}|(?<=LAUNCH\()\(?\w+|\b(?:Complex|Listed)\b", text)
    return {name.lstrip("(") for name in found}
