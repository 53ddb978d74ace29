"""What the tests cover of every function of `tcalc.linalg`, as a table of the documentation.

``python -m tests.operators_table`` writes it there.
"""

from __future__ import annotations

import dis
import inspect
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

import tcalc as tc
from tests import hyper, hyper_svd, test_linalg, test_matrix_functions, test_packed
from tests.linalg_cases import CASES, Case, eigenvalue_sum, eigh_function

PAGE = Path(__file__).resolve().parent.parent / "docs" / "linear_algebra.md"
START, END = "<!-- operators -->\n", "<!-- end of operators -->\n"
HEADER = (
    "function", "parameters", "cases", "oracle", "orders", "compositions", "float32", "batch",
    "n = 0, 1", "condition", "ties",
)  # fmt: skip


def operator(case: Case) -> str:
    """The function of a case: the word that its name starts with."""
    found = re.match(r"\w+", case.name)
    assert found is not None
    return found.group()


def parameters(name: str) -> str:
    """The parameters with a default, as the signature has them."""
    signature = inspect.signature(getattr(tc.linalg, name))
    shown = []
    for p in signature.parameters.values():
        if p.default is not p.empty:
            shown.append(f"{p.name}={p.default!r}".replace("'", '"'))
    return f"`{', '.join(shown)}`" if shown else ""


def words(code: CodeType) -> set[str]:
    """The global names that a function's code reads."""
    inner = [words(c) for c in code.co_consts if isinstance(c, CodeType)]
    read = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    return read.union(*inner)


def names(code: CodeType) -> set[str]:
    """All names in a function's code, attributes too."""
    inner = [names(c) for c in code.co_consts if isinstance(c, CodeType)]
    return set(code.co_names).union(*inner)


def references(oracle: Callable[..., Any]) -> set[str]:
    """The reference functions that an oracle is made of."""
    known = {
        id(f): n for m in (hyper, hyper_svd) for n, f in vars(m).items() if inspect.isfunction(f)
    }
    if id(oracle) in known:
        return {known[id(oracle)]}
    if not hasattr(oracle, "__code__") or oracle.__module__ == "numpy":
        return {"numpy"}
    used = [oracle.__globals__.get(name) for name in words(oracle.__code__)]
    return {known[id(f)] for f in used if id(f) in known} | {"numpy" for f in used if f is np}


def span(numbers: Iterable[int]) -> str:
    found = sorted(numbers)
    between = " to " if found and found[0] < 0 else "–"
    return f"{found[0]}{between}{found[-1]}" if found[1:] else "".join(map(str, found))


def conditions(name: str, cases: list[Case]) -> str:
    kappas: set[float] = set()
    if any(case.name in test_linalg.CONDITIONED for case in cases):
        kappas.update(test_linalg.KAPPAS)
    if name in test_matrix_functions.CONDITIONED:
        kappas.update(test_matrix_functions.KAPPAS)
    return power(max(kappas)) if kappas else ""


def ties(name: str) -> str:
    """Orders tested at equal eigenvalues."""
    if name in test_matrix_functions.GENERAL:
        return span(test_matrix_functions.GENERAL_ORDERS)
    if name in names(eigh_function.__code__) | names(eigenvalue_sum.__code__):
        return span(test_matrix_functions.SPECTRAL_ORDERS)
    return ""


def row(name: str) -> list[str]:
    cases = [case for case in CASES if operator(case) == name]
    few = span(map(len, test_linalg.ELSEWHERE))
    compositions = test_linalg.COMPOSITIONS
    empty = [str(n) for n in test_linalg.EXTENTS if n or any(case.empty for case in cases)]
    count = str(len(cases))
    if name in names(test_packed.test_triangles_go_there_and_back.__code__):
        count += f", offsets {span(test_packed.OFFSETS)}"
    return [
        f"`{name}`",
        parameters(name),
        count,
        ", ".join(sorted(set().union(*[references(case.oracle) for case in cases]))),
        span(compositions),
        ", ".join(str(len(found)) for order, found in compositions.items() if order),
        few,
        few if any(case.batch for case in cases) else "",
        ", ".join(empty),
        conditions(name, cases),
        ties(name),
    ]


def power(value: float) -> str:
    return f"{value:.0e}".replace("e+", "e").replace("e0", "e").replace("e-0", "e-")


def note() -> str:
    """How near the derivatives must come, and what the columns count."""
    tolerances = test_linalg.TOLERANCES
    orders = {
        value: span([k for k in tolerances if tolerances[k] == value])
        for value in tolerances.values()
    }
    shown = ", ".join([f"{power(value)} (order {k})" for value, k in orders.items()])
    modes = ", ".join(test_linalg.MODES)
    return (
        f"Largest errors: {shown}, {power(test_linalg.SINGLE)} (float32), relative to the largest "
        f"entry.\n*Compositions*: chains of the modes {modes} that were tested, at order 1, 2, …\n"
        "*float32*, *batch*: orders. *Condition*: the largest condition number at which errors "
        "stay\nbelow a multiple of it. *Ties*: orders at equal eigenvalues, for `eigh` and "
        "`eigvalsh` of functions\nof all eigenvalues. *numpy*: functions that move or multiply "
        "numbers of any kind.\n"
    )


def table() -> str:
    """The table in Markdown."""
    rows = [list(HEADER), ["---"] * len(HEADER), *[row(name) for name in tc.linalg.__all__]]
    lines = [f"| {' | '.join(cells)} |\n" for cells in rows]
    return f"{note()}\n{''.join(lines)}"


def written(text: str) -> str:
    """The text of the page with the table in its place."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}{table()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
