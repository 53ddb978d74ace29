"""How many units in the last place functions and their derivatives are off, over the whole range.

`python -m tests.stability` measures every elementwise row, of two operands by each while the other
is a number, and the stable forms, orders 0 to 3, at |x| from 1e-300 to 1e300, in float64 and
float32, and writes `docs/stability.md`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

import tcalc as tc
from tcalc.graph.applications import apply
from tcalc.ops.arithmetic import broadcast
from tcalc.ops.elementwise_row import Refused
from tests import oracle
from tests.documents import ROOT
from tests.high_precision import (
    DEFINED,
    STATED,
    Function,
    derivative,
    logcosh,
    sech,
    sigmoid,
    softplus,
    two_operands,
)
from tests.test_operators import ELEMENTWISE, STOPPED

PAGE = ROOT / "docs" / "stability.md"
START, END = "<!-- table -->\n", "<!-- end of table -->\n"
ORDERS = range(4)
#: Errors up to so many units of the dtype's spacing, times the condition, are as they must be.
BOUND = 64

SIZES = np.array(
    [1e-300, 1e-200, 1e-100, 1e-40, 1e-30, 1e-20, 1e-12, 1e-8, 1e-5, 1e-3, 0.03, 0.25, 0.6, 0.95,
     1.3, 2.2, 3.7, 6.1, 11.3, 23.0, 37.5, 90.0, 300.0, 720.0, 1.2e3, 1e5, 1e8, 1e12, 1e20, 1e30,
     1e40, 1e100, 1e200, 1e300]
)  # fmt: skip
POINTS = np.concatenate([-SIZES[::-1], SIZES])

#: What is written as a formula, and found as a stable form: for tcalc, and for mpmath.
FORMS: dict[str, tuple[Function, Function]] = {
    "log(1 + exp(x))": (lambda x: tc.log(1 + tc.exp(x)), softplus),
    "log(1 + exp(-x))": (lambda x: tc.log(1 + tc.exp(-x)), lambda x: softplus(-x)),
    "1/(1 + exp(-x))": (lambda x: 1 / (1 + tc.exp(-x)), sigmoid),
    "exp(x)/(1 + exp(x))": (lambda x: tc.exp(x) / (1 + tc.exp(x)), sigmoid),
    "-log(1/(1 + exp(-x)))": (lambda x: -tc.log(1 / (1 + tc.exp(-x))), lambda x: softplus(-x)),
    "log(cosh(x))": (lambda x: tc.log(tc.cosh(x)), logcosh),
    "(exp(x) - exp(-x))/(exp(x) + exp(-x))": (
        lambda x: (tc.exp(x) - tc.exp(-x)) / (tc.exp(x) + tc.exp(-x)), mp.tanh),
    "1 - tanh(x)^2": (lambda x: 1 - tc.tanh(x) ** 2, lambda x: sech(x) ** 2),
    "log(exp(2*x) + exp(-x))": (
        lambda x: tc.log(tc.exp(2 * x) + tc.exp(-x)), lambda x: -x + softplus(3 * x)),
    "sqrt(x^2)": (lambda x: tc.sqrt(x**2), abs),
    "x^3": (lambda x: x**3, lambda x: x**3),
    "(1 + x)*exp(-x)": (lambda x: (1 + x) * tc.exp(-x), lambda x: (1 + x) * mp.exp(-x)),
    "(1 + x + x^2/3)*exp(-x)": (
        lambda x: (1 + x + x**2 / 3) * tc.exp(-x), lambda x: (1 + x + x**2 / 3) * mp.exp(-x)),
    "x*log(x)": (lambda x: tc.xlogy(x, x), lambda x: x * mp.log(x) if x > 0 else mp.nan),
}  # fmt: skip


#: The operand that is held, exact in both dtypes; of rows that take whole numbers there.
HELD, WHOLE = 2.5, {"polygamma": 2, "inverse_mills": 1, "spherical_jn": 2}
#: What mpmath computes in time and right only up to here; for positive x.
REACH = {
    "jv": 1e5, "yv": 1e5, "iv": 720.0, "kv": 720.0, "ive": 1e5, "gammainc": 1.2e3,
    "gammaincc": 720.0, "beta": 1e5, "betaln": 1e5, "polygamma": 1e8, "inverse_mills": 90.0,
}  # fmt: skip
#: Below it quotients are many, and a rounded one may be the next whole number.
LEAST = {"mod(2.5, x)": 0.03}
#: Rows of two operands without an oracle over the whole range; `test_special_functions` has them.
ELSEWHERE = {"stdtr", "spherical_jn"}


@dataclass(frozen=True)
class Subject:
    """A function of entries, for both sides, and the points at which it is measured."""

    name: str
    ours: Function
    theirs: Function
    low: float = -np.inf
    high: float = np.inf


def subjects() -> list[Subject]:
    rows = [
        Subject(row.name, lambda x, row=row: apply(row, x), definition)
        for row in ELEMENTWISE
        if len(row.core) == 1 and row.name not in STOPPED and "#" not in row.name
        if (definition := DEFINED.get(row.name) or oracle.function(row.name)) is not None
    ]
    return [*rows, *pairs(), *[Subject(name, *pair) for name, pair in FORMS.items()]]


def pairs() -> Iterator[Subject]:
    """Rows of two operands, by each of those that have derivatives or steps."""
    for row in ELEMENTWISE:
        if len(row.core) != 2 or row.name in ELSEWHERE:
            continue
        definition = DEFINED.get(row.name) or oracle.function(row.name)
        held = WHOLE.get(row.name, HELD)
        assert definition is not None
        for place, partial in enumerate(row.meaning.partials):
            if isinstance(partial, Refused) or (place == 0 and row.name in WHOLE):
                continue
            name = f"{row.name}(x, {held})" if place == 0 else f"{row.name}({held}, x)"
            if stated := two_operands(row.name, place, held):
                STATED[name] = stated
            reach = REACH.get(row.name, np.inf)
            low = 0.0 if row.name in REACH else -np.inf
            yield Subject(
                name,
                lambda x, row=row, k=place, h=held: apply(row, *broadcast(*pair(k, x, h))),
                lambda x, f=definition, k=place, h=held: f(*pair(k, x, mp.mpf(h))),
                LEAST.get(name, low),
                reach,
            )


def pair(place: int, x: Any, held: Any) -> tuple[Any, Any]:
    return (x, held) if place == 0 else (held, x)


# --- what is documented ---------------------------------------------------------------------------

RANGE = "intermediate powers leave the range of numbers"
TAIL = "where it overflows, inf - inf is nan"
DIGITS_LOST = "near 0, where it vanishes, only the absolute error is as small"
QUANTILE = "derivatives are powers of exp(y^2), which has y^2 times its relative error"

SCIPYS = "SciPy's function is as far off, and what follows from it"
FAR = "digits cancel where one operand is much larger"
LOGARITHMS = "an exponential of logarithms, whose size counts; then intermediate powers"

#: Functions and orders with errors above the bound somewhere, and why; by name and least order.
EXCEPTIONS: dict[str, tuple[int, str]] = {
    "arcsinh": (3, RANGE),
    "arctan": (2, RANGE),
    "erf": (3, RANGE),
    "erfc": (3, RANGE),
    "ndtr": (3, RANGE),
    "gamma": (2, TAIL),
    "rgamma": (2, "near 0 and at poles of gamma it is a product of 0 and infinity"),
    "erfcinv": (1, QUANTILE),
    "ndtri": (1, QUANTILE),
    "log_ndtr": (3, "digits cancel between -3 and -1"),
    "sigmoid": (2, DIGITS_LOST),
    "softplus": (3, DIGITS_LOST),
    "log(1 + exp(x))": (3, DIGITS_LOST),
    "log(1 + exp(-x))": (3, DIGITS_LOST),
    "-log(1/(1 + exp(-x)))": (3, DIGITS_LOST),
    "1/(1 + exp(-x))": (2, DIGITS_LOST),
    "exp(x)/(1 + exp(x))": (2, DIGITS_LOST),
    "log(exp(2*x) + exp(-x))": (3, DIGITS_LOST),
    "(1 + x + x^2/3)*exp(-x)": (0, RANGE),
    "x*log(x)": (3, RANGE),
    "arctan2(x, 2.5)": (2, RANGE),
    "arctan2(2.5, x)": (2, RANGE),
    "beta(x, 2.5)": (0, SCIPYS),
    "beta(2.5, x)": (0, SCIPYS),
    "betaln(x, 2.5)": (0, SCIPYS),
    "betaln(2.5, x)": (0, SCIPYS),
    "gammainc(2.5, x)": (1, LOGARITHMS),
    "gammaincc(2.5, x)": (1, LOGARITHMS),
    "hypot(x, 2.5)": (2, FAR),
    "hypot(2.5, x)": (2, FAR),
    "inverse_mills(1, x)": (3, "digits cancel below 1"),
    "iv(2.5, x)": (0, SCIPYS),
    "ive(2.5, x)": (0, SCIPYS),
    "jv(2.5, x)": (0, SCIPYS),
    "yv(2.5, x)": (1, TAIL),
}  # fmt: skip


def excepted(name: str, order: int) -> str:
    """Why errors of this order may be larger; empty where they may not."""
    least, reason = EXCEPTIONS.get(name, (len(ORDERS), ""))
    return reason if order >= least else ""


# --- what is measured -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Miss:
    """An entry: where, what was found and wanted, and the error in units times the condition."""

    x: float
    order: int
    found: float
    wanted: float
    units: float


def measured(
    subject: Subject, dtype: type, points: Sequence[float], orders: Sequence[int] = ORDERS
) -> Iterator[Miss]:
    """One entry for every point of the domain and order."""
    info = np.finfo(dtype)
    limit = [
        p for p in points
        if float(info.tiny) <= abs(p) <= float(info.max) and subject.low < p <= subject.high
    ]  # fmt: skip
    at = np.array(limit, dtype)
    x = tc.var("x", len(at))
    e = subject.ours(x)
    for order in range(max(orders) + 1):
        if order:
            e = tc.jvp(e, x, tc.ones(len(at)))
        if order not in orders:
            continue
        values = np.broadcast_to(tc.compile(e)(x=at), at.shape)
        for v, found in zip(at.tolist(), values.tolist(), strict=True):
            wanted = derivative(subject.name, subject.theirs, v, order)
            if wanted is None or mp.isnan(wanted):
                continue
            following = derivative(subject.name, subject.theirs, v, order + 1)
            yield Miss(v, order, found, _number(wanted), _units(info, v, found, wanted, following))


def _number(wanted: Any) -> float:
    return float(wanted) if abs(wanted) < mp.mpf(10) ** 308 else float(mp.sign(wanted)) * np.inf


def _units(info: Any, x: float, found: float, wanted: Any, following: Any) -> float:
    """The error over the spacing of numbers and the condition |x f'(x)/f(x)|, at least 1."""
    if np.isnan(found):
        return np.inf
    size, eps = abs(wanted), mp.mpf(float(info.eps))
    largest = mp.mpf(float(info.max))
    if np.isinf(found) or size > largest:
        near = size > largest * (1 - 64 * eps) or (size > largest / 4 and np.isinf(found))
        return 0.0 if near and (np.isinf(found) or abs(found) > info.max / 4) else np.inf
    known = following is not None and not mp.isnan(following)
    condition = max(mp.mpf(1), abs(mp.mpf(x) * following) / size) if known and size else mp.mpf(1)
    # Below the least normal numbers results have fewer digits, or none.
    scale = max(eps * condition * size, mp.mpf(float(info.tiny)) / 16)
    return float(abs(mp.mpf(found) - wanted) / scale)


# --- the page -------------------------------------------------------------------------------------


def cell(misses: Sequence[Miss]) -> str:
    """The largest error in units; where it is above the bound, between which |x| it is below."""
    wrong = [abs(m.x) for m in misses if m.units > BOUND]
    right = [abs(m.x) for m in misses if m.units <= BOUND]
    kept = [m.units for m in misses if m.units <= BOUND]
    worst = max(kept, default=0.0)
    shown = f"{worst:.2g}" if worst >= 0.05 else "0"
    if not wrong:
        return shown
    inner = [x for x in right if x not in wrong]
    low = max([x for x in wrong if x < min(inner, default=0)], default=None)
    runs = f"{min(inner, default=0):.0e} to {max(inner, default=0):.0e}"
    full = all(min(inner) > x or max(inner) < x for x in wrong) if inner else False
    return f"{shown} for {runs}" if full or low else f"{max(m.units for m in misses):.1g} †"


def row(subject: Subject) -> tuple[str, list[str]]:
    """The line of a function, and what no exception documents."""
    cells, undocumented = [], []
    for dtype in (np.float64, np.float32):
        found = list(measured(subject, dtype, POINTS.tolist()))
        for order in ORDERS:
            misses = [m for m in found if m.order == order]
            cells.append(cell(misses) if misses else "")
            if any(m.units > BOUND for m in misses) and not excepted(subject.name, order):
                undocumented.append(f"{subject.name}, order {order}, {dtype.__name__}")
    less = any(c.endswith("†") or " for " in c for c in cells)
    why = EXCEPTIONS.get(subject.name, (0, ""))[1] if less else ""
    return f"| `{subject.name}` | {' | '.join(cells)} | {why} |\n", undocumented


def table() -> tuple[str, list[str]]:
    orders = [f"{bits}: {order}" for bits in ("float64", "float32") for order in ORDERS]
    lines = [f"| function | {' | '.join(orders)} | where more |\n", f"|{' --- |' * 10}\n"]
    wrong: list[str] = []
    for subject in subjects():
        line, undocumented = row(subject)
        print(line, end="", file=sys.stderr, flush=True)
        lines.append(line)
        wrong += undocumented
    return "".join(lines), wrong


def main() -> int:
    """Write the page; 1 where an error is larger than documented."""
    found, wrong = table()
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{START}{found}{END}{after}", encoding="utf-8")
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
