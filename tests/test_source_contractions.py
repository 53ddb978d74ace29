"""Printed contractions of two tensors: every order of axes, against NumPy's einsum."""

from __future__ import annotations

import re
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

import tcalc as tc
from tests.c_programs import Job, compiled, needs_compiler
from tests.shared import run_source

#: The letters of the first tensor, the second with its letters, and the result.
PAIRS = [
    ("ijk", "k", "ij"),
    ("ijk", "k", "ji"),
    ("ijkl", "k", "ijl"),
    ("ijkl", "kl", "ij"),
    ("ijkl", "km", "ijml"),
    ("ijk", "kim", "mj"),
    ("ijk", "kjm", "mij"),
    ("ijk", "ljk", "li"),
    ("ijkl", "mji", "kmjl"),
    ("mji", "ijkl", "jlkm"),
    ("ijk", "jkl", "jil"),
]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_all_orders_of_axes(pair: tuple[str, str, str]) -> None:
    first, second, out = pair
    rng = np.random.default_rng(0)
    sizes = dict(zip("ijklm", (2, 3, 4, 5, 6), strict=True))
    for one in permutations(first):
        spec = f"{''.join(one)},{second}->{out}"
        a, b = (rng.normal(size=[sizes[k] for k in word]) for word in (one, second))
        x, y = tc.var("x", a.shape), tc.var("y", b.shape)
        found = run_source(tc.einsum(spec, x, y), {"x": a, "y": b})
        np.testing.assert_allclose(found, np.einsum(spec, a, b), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "rest", ["jk,k->i", "i,j->", "jk->k", "jk->", "j->", "->i", "->", "j,i->ij"]
)
def test_inverses_in_contractions(rest: str) -> None:
    """They are solved with, or made where one of their axes is summed alone."""
    rng = np.random.default_rng(0)
    words, _, out = rest.partition("->")
    others = [word for word in words.split(",") if word]
    arrays = [rng.normal(size=[3] * len(word)) for word in others]
    root, b = rng.normal(size=(3, 3)), tc.var("b", (3, 3))
    names = [f"x{k}" for k in range(len(arrays))]
    factors = [tc.var(name, a.shape) for name, a in zip(names, arrays, strict=True)]
    inverse = tc.linalg.inv(b @ b.T + tc.eye(3))
    spec = ",".join(["ij", *others]) + "->" + out
    given = dict(zip(names, arrays, strict=True))
    made = np.linalg.inv(root @ root.T + np.eye(3))
    for turned in (False, True):
        e = tc.einsum(spec, inverse.T if turned else inverse, *factors)
        found = run_source(e * tc.sum(inverse), {**given, "b": root})
        np.testing.assert_allclose(found, np.einsum(spec, made, *arrays) * made.sum(), rtol=1e-11)


@pytest.mark.parametrize("words", ["i,j,k", "ij,j,k", "ij,k,j", "i,j,k,l"])
def test_products_have_the_same_bits_in_every_order_of_axes(words: str) -> None:
    """Of the maximum the derivative asks where it stands."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=[3] * len(word)) for word in words.split(",")]
    names = [f"x{k}" for k in range(len(arrays))]
    factors = [tc.var(name, a.shape) for name, a in zip(names, arrays, strict=True)]
    given = dict(zip(names, arrays, strict=True))
    letters = sorted(set(words) - {","})
    first = run_source(tc.einsum(f"{words}->{''.join(letters)}", *factors), given)
    for out in permutations(letters):
        found = run_source(tc.einsum(f"{words}->{''.join(out)}", *factors), given)
        np.testing.assert_array_equal(found, first.transpose([letters.index(k) for k in out]))


#: Stacks of products: axes that both tensors have and the result too, or that stand apart.
STACKS = [
    ("aij", "ajk", "aik"),
    ("aij", "ajk", "aki"),
    ("iaj", "jak", "aik"),
    ("aij", "ajk", "iak"),
    ("abij", "bajk", "abik"),
    ("iqjl", "qp", "ijlp"),
    ("iqjl", "qp", "pijl"),
    ("iqjl", "qap", "iajlp"),
    ("aqij", "qakp", "aijkp"),
    ("aij", "kja", "aik"),
]


@needs_compiler
def test_stacks_of_products_in_c(tmp_path: Path) -> None:
    """Every entry, with axes of the first one in all orders; a routine multiplies matrices."""
    rng = np.random.default_rng(0)
    lengths = dict(zip("abijklpq", (3, 2, 9, 10, 11, 3, 8, 12), strict=True))
    jobs, expected = [], []
    for first, second, out in STACKS:
        for one in permutations(first):
            arrays = {
                name: rng.normal(size=[lengths[k] for k in word])
                for name, word in (("x", one), ("y", second))
            }
            spec = f"{''.join(one)},{second}->{out}"
            x, y = (tc.var(name, tuple(word)) for name, word in (("x", one), ("y", second)))
            jobs.append(Job(spec, tc.einsum(spec, x, y), arrays, lengths))
            expected.append(np.einsum(spec, arrays["x"], arrays["y"]))
    for program, entries in zip(compiled(jobs, tmp_path), expected, strict=True):
        _, (found,) = program()
        np.testing.assert_allclose(found, entries, rtol=1e-11, atol=1e-11)
        assert re.search(r"\b(product|multiply)\(\w", program.source.rpartition("\nint f")[2])


@needs_compiler
def test_stacks_of_what_is_computed_in_c(tmp_path: Path) -> None:
    """What is made for a product lies as it is multiplied."""
    rng = np.random.default_rng(1)
    x, y = tc.var("x", ("a", "i", "q", "l")), tc.var("y", ("q", "a", "p"))
    sizes = {"a": 3, "i": 9, "q": 10, "l": 4, "p": 11}
    arrays = {v.name: rng.normal(size=[sizes[str(k)] for k in v.shape]) for v in (x, y)}
    e = tc.einsum("aiql,qap->ailp", tc.sin(x) * tc.exp(x), tc.cos(y) + y)
    (program,) = compiled([Job("computed", e, arrays, sizes)], tmp_path)
    expected = np.einsum(
        "aiql,qap->ailp",
        np.sin(arrays["x"]) * np.exp(arrays["x"]),
        np.cos(arrays["y"]) + arrays["y"],
    )
    np.testing.assert_allclose(program()[1][0], expected, rtol=1e-11, atol=1e-11)
