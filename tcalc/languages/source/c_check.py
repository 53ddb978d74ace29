"""The self-check of a C program: a `main` that compares with central differences, or only runs."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence

from .c_fusion import live
from .c_header import declarations
from .c_module import called
from .c_nests import Line, Statement, lettered, lines, nest, place
from .c_values import Value, entry_of, value
from .c_writer import Writer
from .language import NUMBERS, Check, Difference, Sample
from .scope import unlike

_HEAD = """
#include <stdio.h>
#include <stdlib.h>

/* Numbers from 0.5 to 1.5. */
static void draw(ptrdiff_t n, real *out)
{
    static unsigned long state = 1;
    for (ptrdiff_t i = 0; i < n; i++) {
        state = (state * 1103515245UL + 12345UL) & 0x7fffffffUL;
        out[i] = 0.5 + (double)(state >> 8) / (1 << 23);
    }
}
""".strip()

_DIFFERENCES = """
    real worst = 0, most = 1;
    const real step = sizeof(real) == sizeof(double) ? 1e-6 : 1e-2;
    for (ptrdiff_t at = 0; at < {entries}; at++) {{
        memset(unit, 0, sizeof unit);
        unit[at] = 1;
        {direct}
        for (int sign = -1; sign <= 1; sign += 2) {{
            memcpy(kept, {x}, sizeof kept);
            for (ptrdiff_t i = 0; i < {entries}; i++)
                {x}[i] += sign * step * direction[i];
            if ({before})
                return 1;
            memcpy({x}, kept, sizeof kept);
            memcpy(sign < 0 ? below : above, value, sizeof value);
        }}
        for (ptrdiff_t i = 0; i < {values}; i++) {{
            const real expected = (above[i] - below[i]) / (2 * step);
            const real error = fabs(expected - {found}[i * {entries} + at]);
            worst = error > worst || isnan(error) ? error : worst;
            most = fabs(expected) > most ? fabs(expected) : most;
        }}
    }}
    printf("largest difference from central differences: %.1e\\n", (double)(worst / most));
    return !(worst / most < (sizeof(real) == sizeof(double) ? 1e-6 : 1e-2));
""".strip("\n")


def check_text(language: Writer, check: Check, source: str, routines: Mapping[str, str]) -> str:
    """A program's end.

    Parameters
    ----------
    language : C
    check : Check
    source : str
        What it is the end of.
    routines : mapping
        The functions that it may carry along, by name.
    """
    parts, data, start = [_HEAD], list[str](), list[str]()
    declared = _apart(declarations(source))
    sizes = dict(check.sizes)
    samples = [s._replace(name=_beside(s.name, declared)) for s in check.samples]
    for given, s in zip(check.samples, samples, strict=True):
        for n, extent in zip(language.scope.variables[given.name].shape, s.shape, strict=True):
            if isinstance(n, str) and n.isidentifier():
                sizes[language.extent(n)] = extent
        parts.append(_sampled(language, s, f"make_{s.name}"))
        kind = "ptrdiff_t" if s.integral else "real"
        data.append(f"static {kind} {s.name}[{_count(s.shape)}];")
        start += _drawn(s)
    body = [*data, *_results(check.function, check.shapes, declared)]
    first = _call(check.function, declared, samples, sizes)
    ran = [f"if ({first})", "    return 1;"]
    if check.difference is None:
        end = ['    printf("computed\\n");', "    return 0;"]
    else:
        renamed = check._replace(samples=samples)
        end = _compared(language, renamed, check.difference, declared, sizes, parts, body)
    written = [f"    {line}" for line in [*body, *start, *ran]]
    main = "\n".join(["int main(void)", "{", *written, *end, "}"])
    helpers = [text for text in called(parts, routines) if text not in source]
    return "\n" + "\n\n".join([*helpers, *parts, main]) + "\n"


def _compared(
    language: Writer, check: Check, difference: Difference, declared: Mapping[str, Sequence[str]],
    sizes: Mapping[str, int], parts: list[str], body: list[str],
) -> list[str]:  # fmt: skip
    """Statements that compare; what they need goes to the parts and to the body's head."""
    d = difference.direction._replace(name=_beside(difference.direction.name, declared))
    parts.append(_sampled(language, d, "make_direction"))
    entries = math.prod(d.shape)
    (shape,) = check.shapes
    values = math.prod(shape) // max(1, entries)
    arrays = {"unit": entries, "direction": entries, "kept": entries}
    arrays |= {"value": values, "above": values, "below": values}
    body += [f"static real {name}[{max(1, n)}];" for name, n in arrays.items()]
    known = {**sizes, **difference.sizes}
    body.append(
        f"void *space_before = malloc({_workspace(difference.before, declared, known)} + 1);"
    )
    text = _DIFFERENCES.format(
        entries=entries, values=values, x=d.name, found="out",
        direct=_stacked(d, "make_direction", "unit", "direction"),
        before=_call(
            difference.before, declared, check.samples, known, ["value"], "space_before"
        ),
    )  # fmt: skip
    return text.split("\n")


def _apart(declared: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Declarations in which no parameter has the name of a function, which it would hide."""
    return {
        name: [re.sub(r"\w+$", lambda found: _beside(found[0], declared), p) for p in given]
        for name, given in declared.items()
    }


def _beside(name: str, functions: Collection[str]) -> str:
    return unlike(name, functions, "_") if name in functions else name


def _count(shape: Sequence[int]) -> int:
    return max(1, math.prod(shape))


def _sampled(language: Writer, s: Sample, name: str) -> str:
    """A function that makes data of numbers."""
    v: Value = value(s.value)
    shape = tuple([str(n) for n in s.shape[s.stack :]])
    index = language.index(len(shape))
    entry = entry_of(v, index).text
    statements = [line for line in language.scope.lines if isinstance(line, Statement)]
    arrays = {a.name: a for line in statements for a in line.made}
    fill = nest(index, shape, [Line(f"out[{place(index, shape)}]", "=", entry)])
    nodes = live([*[n for line in statements for n in line.nodes], *fill], ["out"])
    body = lines(lettered(nodes, [NUMBERS]))
    named = set(re.findall(r"\w+", "\n".join(body)))
    storage = [f"    real {a.name}[{a.size}];" for a in arrays.values() if a.name in named]
    head = f"static void {name}(const real *{NUMBERS}, real *out)"
    if not shape:
        head = f"static void {name}(const real *given, real *out)"
        storage.append(f"    const real {NUMBERS} = *given;")
    return "\n".join([head, "{", *storage, *[f"    {line}" for line in body], "}"])


def _stacked(s: Sample, name: str, given: str, out: str) -> str:
    """The call that makes data, for every item of a stack."""
    items, size = _count(s.shape[: s.stack]), _count(s.shape[s.stack :])
    if items == 1:
        return f"{name}({given}, {out});"
    return (
        f"for (ptrdiff_t i = 0; i < {items}; i++) {name}({given} + i * {size}, {out} + i * {size});"
    )


def _drawn(s: Sample) -> list[str]:
    n = _count(s.shape)
    made = "made" if s.integral else s.name
    found = [
        "{",
        f"    real numbers[{n}]{f', made[{n}]' if s.integral else ''};",
        f"    draw({n}, numbers);",
        f"    {_stacked(s, f'make_{s.name}', 'numbers', made)}",
    ]
    if s.integral:
        found.append(f"    for (ptrdiff_t i = 0; i < {n}; i++) {s.name}[i] = floor(made[i]);")
    return [*found, "}"]


def _results(
    name: str, shapes: Sequence[Sequence[int]], declared: Mapping[str, Sequence[str]]
) -> list[str]:
    outs = [p.split()[-1] for p in declared[name] if p.startswith("real *")]
    return [f"static real {o}[{_count(s)}];" for o, s in zip(outs, shapes, strict=True)]


def _call(
    name: str, declared: Mapping[str, Sequence[str]], samples: Sequence[Sample],
    sizes: Mapping[str, int], outs: Sequence[str] = (), space: str = "",
) -> str:  # fmt: skip
    """A call with the data."""
    numbers, given, left = {s.name for s in samples if not s.shape}, [], list(outs)
    for p in declared[name]:
        last = p.split()[-1]
        if p.startswith("void"):
            given.append(space or f"malloc({_workspace(name, declared, sizes)} + 1)")
        elif p.startswith("real *") and outs:
            given.append(left.pop(0))
        elif last in numbers:
            given.append(f"*{last}")
        else:
            given.append(str(sizes[last]) if last in sizes and p.startswith("ptrdiff_t") else last)
    return f"{name}({', '.join(given)})"


def _workspace(name: str, declared: Mapping[str, Sequence[str]], sizes: Mapping[str, int]) -> str:
    """How many bytes a function asks for, which may ask a library in turn."""
    words = [p.split()[-1] for p in declared[name] if p.startswith("ptrdiff_t")]
    given = [str(sizes[n]) for n in words if n in sizes]
    given += [p.split()[-1] for p in declared[name] if p.startswith("cusolver")]
    return f"{name}_workspace({', '.join(given)})"
