"""Functions and their derivatives are right over the whole range, or their page says where not."""

from __future__ import annotations

import re

import mpmath as mp
import numpy as np
import pytest

from tests.high_precision import derivative
from tests.stability import (
    BOUND,
    END,
    EXCEPTIONS,
    ORDERS,
    PAGE,
    START,
    Subject,
    excepted,
    measured,
    subjects,
)  # fmt: skip

#: One or two of every scale, of which both precisions have the same where they have it.
SAMPLE = [
    sign * (float(np.float32(size)) if 1e-37 < size < 1e38 else size)
    for size in (1e-300, 1e-100, 1e-20, 1e-8, 1e-3, 0.25, 0.95, 2.2, 37.5, 720.0, 1e5, 1e20, 1e300)
    for sign in (-1, 1)
]
SUBJECTS = subjects()


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda s: s.name)
def test_errors_are_small_or_documented(subject: Subject) -> None:
    for dtype in (np.float64, np.float32):
        found = list(measured(subject, dtype, SAMPLE))
        assert found or subject.name in ("gammasgn", "isnan")
        wrong = [m for m in found if m.units > BOUND and not excepted(subject.name, m.order)]
        assert not wrong, dtype.__name__


def test_the_page_tells_of_every_function() -> None:
    table = PAGE.read_text(encoding="utf-8").partition(START)[2].partition(END)[0]
    rows = dict(re.findall(r"^\| `(.*?)` \| (.*)\|$", table, re.MULTILINE))
    assert list(rows) == [subject.name for subject in SUBJECTS], "run `python -m tests.stability`"
    for name, row in rows.items():
        cells = [cell.strip() for cell in row.split(" | ")]
        limited = [k for k, c in enumerate(cells[:8]) if c.endswith("†") or " for " in c]
        assert bool(limited) == bool(cells[8]), name
        assert all(excepted(name, k % len(ORDERS)) for k in limited), name
    assert set(EXCEPTIONS) <= set(rows)


def test_the_oracle_is_right() -> None:
    """Against derivatives known in closed form, where differences cancel most."""
    with mp.workdps(50):
        for x in (1e-300, -1e-8, 0.3, 40.0, 1e20):
            at = mp.mpf(x)
            with mp.workdps(400):
                wanted = [mp.cos(at), -mp.sin(at), -mp.cos(at), mp.sin(at), mp.cos(at)]
            for order, value in enumerate(wanted):
                assert abs(derivative("cos", mp.cos, x, order) / value - 1) < 1e-15
        for order, value in enumerate((0.0, 0.0, 2.0, 0.0)):
            square = derivative("x^2", lambda v: v * v, 1e-200, order)
            assert order == 1 or abs(square - value) < 1e-300
        assert mp.isnan(derivative("log", mp.log, -1.0, 1))
