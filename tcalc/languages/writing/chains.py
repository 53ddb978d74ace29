"""Products of matrices as lists of powers, what several have in common; the order of a sum."""

from __future__ import annotations

from collections.abc import Sequence

from ...support.records import NamedTuple
from .notation import SHORT, SUM, Fragment

#: A factor and its exponent.
Power = tuple[Fragment, int]


class Ends(NamedTuple):
    """Products with equal factors at an end: these, the rests, and are they in front?"""

    shared: list[Fragment]
    rests: list[list[Fragment]]
    front: bool


def append_power(powers: list[Power], p: Fragment, k: int) -> None:
    """One more power of a product; of the last factor once more, it is one power."""
    if powers and powers[-1][0].text is p.text:
        p, before = powers.pop()
        k += before
    powers.append((p, k))


def period(powers: Sequence[Power]) -> int:
    """How many powers repeat to make the whole, where these are long enough to be written once."""
    keys = [(id(p.text), k) for p, k in powers]
    for n in range(2, len(keys) // 2 + 1):
        if keys == keys[:n] * (len(keys) // n):
            return n if sum([p.size for p, _ in powers[:n]]) >= SHORT // 2 else 0
    return 0


def equal_ends(terms: Sequence[Fragment]) -> Ends | None:
    """The factors with which all products of a sum begin, else those with which they end.

    None where no product is these and a diagonal matrix.
    """
    rows = [[p for p, k in term.chained for _ in range(k)] for term in terms]
    for front in (True, False):
        sides = rows if front else [row[::-1] for row in rows]
        n = 0
        while all(len(row) > n + 1 and row[n].text is sides[0][n].text for row in sides):
            n += 1
        if n:
            rests = [row[n:] if front else row[: len(row) - n] for row in rows]
            if not any(len(rest) == 1 and rest[0].diagonal for rest in rests):
                continue
            return Ends(rows[0][:n] if front else rows[0][len(rows[0]) - n :], rests, front)
    return None


def leading_sum(terms: Sequence[Fragment]) -> list[Fragment]:
    """The terms with one nested sum in front, where it needs no parentheses."""
    for k, p in enumerate(terms):
        if p.level == SUM and not p.negative:
            return [p, *terms[:k], *terms[k + 1 :]]
    return list(terms)
