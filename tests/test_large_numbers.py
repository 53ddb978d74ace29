"""Integers too long to write, extents too large for floats, memory that a process may not have."""

from __future__ import annotations

import math
import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.app.declarations import declare
from tcalc.run.bound import Bound
from tcalc.support import machine
from tcalc.support.byte_counts import show_bytes

x, A, a = tc.var("x", "n"), tc.var("A", ("m", "n")), tc.var("a")
LONG = [10**k * sign for k in (310, 400, 4_000, 5_000, 50_000) for sign in (1, -1)]

# What users hand integers to.
TAKERS: list[Callable[[int], Any]] = [
    lambda k: tc.var("v", k),
    lambda k: tc.var("v", ("n", k)),
    lambda k: tc.zeros((2, k)),
    lambda k: tc.eye(k),
    lambda k: tc.sum(tc.ones((k, k))),
    lambda k: tc.parse("v", v=k),
    lambda k: tc.parse_index("f = 1", v=k),
    lambda k: tc.compile(x).plan_for(x=(k,)),
    lambda k: tc.compile(x).plan_for(n=k),
    lambda k: tc.explain(x @ x, "x", n=k),
    lambda k: tc.eye("n")(n=k),
    lambda k: tc.compile(tc.eye("n"), data={"n": k}),
    lambda k: x[k],
    lambda k: x[k:],
    lambda k: x[::k],
    lambda k: tc.ones(5)[k],
    lambda k: tc.diag(x, k),
    lambda k: tc.trace(A, k),
    lambda k: tc.roll(x, k),
    lambda k: tc.pad(x, k),
    lambda k: tc.pad(x, (k, 0)),
    lambda k: tc.const([k]),
    lambda k: tc.const(k),
    lambda k: tc.vmap(x, {"x": k}),
    lambda k: x(x=[k]),
]

# What is read from text, which is never as long as a number that Python does not write.
READERS: list[Callable[[str], Any]] = [
    lambda k: tc.var("v", k),
    lambda k: tc.var("v", f"n*{k}"),
    lambda k: tc.var("v", f"n//{k}"),
    lambda k: tc.var("v", f"n^{k}"),
    lambda k: tc.parse("v", v=("n", k)),
    lambda k: tc.parse(f"vector(a,{k})"),
    lambda k: tc.parse(f"eye({k})"),
    lambda k: tc.parse_index(f"f[i=0..{k}] = a", a=()),
    lambda k: tc.parse_index(f"f = v[{k}]", v="n"),
    lambda k: tc.parse_einsum(f"#('->i', i={k})"),
    lambda k: declare([f"v=n,{k}"]),
    lambda k: declare([f"v=n,2*{k}"]),
]


@pytest.mark.parametrize("length", [310, 400, 4_000, 5_000])
@pytest.mark.parametrize("call", READERS, ids=range(len(READERS)))
def test_long_integers_in_text_are_refused_in_words(
    call: Callable[[str], Any], length: int
) -> None:
    for sign in ("", "-"):
        with pytest.raises((tc.Error, TypeError, ValueError)) as caught:
            call(sign + "9" * length)
        assert "integer string conversion" not in str(caught.value)
        assert len(str(caught.value)) < 600


@pytest.mark.parametrize("call", TAKERS, ids=range(len(TAKERS)))
def test_long_integers_are_refused_in_words(call: Callable[[int], Any]) -> None:
    for k in LONG:
        with pytest.raises((tc.Error, TypeError, ValueError)) as caught:
            call(k)
        assert "integer string conversion" not in str(caught.value)
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize("digits", [20, 100, 250])
def test_extents_that_no_array_has_are_planned(digits: int) -> None:
    """Predicted work and memory are numbers, infinite ones at worst."""
    n = 10**digits
    f = tc.sum(tc.exp(A @ x) ** 2)
    for e in (f, tc.grad(f, x), tc.hessian(f, x), tc.trace(tc.eye("n")) * a):
        given = {"A": (n, n), "x": (n,), "a": ()}
        plan = tc.compile(e).plan_for(**{k: v for k, v in given.items() if k in e.variables}, n=n)
        assert str(plan)
        assert plan.flops >= 0
        assert show_bytes(plan.peak_bytes)
    assert str(tc.explain(f, "x", n=n, m=n))


NUMBERS = [
    1e308, 1.7976931348623157e308, -1e308, 1e-308, 5e-324, -5e-324, 0.1, 1 / 3, 2.0**53, 1e16,
    10**20, 10**307, 1e308 / 3, math.pi * 1e307,
]  # fmt: skip


@pytest.mark.parametrize("value", NUMBERS)
def test_numbers_of_any_size_are_written_and_read(value: float) -> None:
    e = value * a
    for text in (str(e), str(tc.parse(str(e)))):
        assert tc.parse(text) is e
    for write in (tc.to_latex, tc.to_mathml, tc.to_index, tc.to_einsum, tc.to_code):
        assert write(e)
        assert write(e + x)
    scope: dict[str, Any] = {}
    exec(tc.to_code(e), scope)
    assert scope["f"](1.0) == value
    assert tc.parse_index(tc.to_index(e), a=())(a=1.0) == value


# --- memory ---------------------------------------------------------------------------------------

LIMITED = """
import resource, sys
import numpy as np
import tcalc as tc

X, w = tc.var("X", ("m", "n")), tc.var("w", "n")
f = tc.sum(tc.exp(X @ w))
calls = [
    lambda: tc.hessian(f, w)(X=np.ones((2, 20_000)), w=np.ones(20_000)),
    lambda: tc.outer(w, w)(w=np.ones(20_000)),
    lambda: tc.eye("n")(n=20_000),
    lambda: tc.compile(tc.hessian(f, w), structured=True)(
        X=np.ones((2, 20_000)), w=np.ones(20_000)).todense(),
    lambda: tc.jacobian(tc.exp(X), X)(X=np.ones((150, 150))),
]
tc.grad(f, w)(X=np.ones((2, 3)), w=np.ones(3))
size = int(open("/proc/self/statm").read().split()[{place}]) * resource.getpagesize()
resource.setrlimit(resource.{limit}, (size + 2**28, resource.RLIM_INFINITY))
for call in calls:
    try:
        call()
    except tc.MemoryLimitError as error:
        print("refused:", error)
    except MemoryError as error:
        print("raw:", error)
    else:
        print("ran")
print(tc.outer(w, w)(w=np.ones(500)).sum())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sizes from /proc")
@pytest.mark.parametrize(("limit", "place"), machine.PROCESS_LIMITS)
def test_a_process_with_a_limit_is_refused_what_it_may_not_have(limit: str, place: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED.format(limit=limit, place=place)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert len(lines) == 6, done.stderr
    assert all(line.startswith("refused: ") for line in lines[:-1]), lines
    assert lines[-1] == "250000.0"


def test_what_a_process_may_still_have() -> None:
    unlimited = all(
        resource.getrlimit(getattr(resource, name))[0] == resource.RLIM_INFINITY
        for name, _ in machine.PROCESS_LIMITS
    )
    assert (machine.own_memory() is None) is unlimited


def test_an_allocation_that_fails_is_one_of_ours() -> None:
    def fail(_: object) -> list[Any]:
        np.empty(2**50)
        return []

    with pytest.raises(tc.MemoryLimitError, match="used up: Unable to allocate 8"):
        Bound(fail, None, np.dtype(float), []).run([])


@pytest.mark.parametrize("several", [False, True])
def test_quotients_of_compressed_tensors_exist_where_reciprocals_do_not(several: bool) -> None:
    x, y, c = tc.var("x", "n"), tc.var("y", "n"), tc.var("c", "n")
    f = tc.sum(c * x * x) / 2 + (tc.sum(c * y * y) / 2 if several else 0)
    H = tc.compile(tc.hessian(f, (x, y) if several else x), structured=True)
    held = H(c=np.array([1e-300, 2e-300]))
    for found in (held / 1e-310, held * 1e155 * 1e155, held * 1e200 * 1e200 / 1e90):
        for part in found.diagonal() if several else (found.diagonal(),):
            np.testing.assert_allclose(part, [1e10, 2e10], rtol=1e-13)
    with pytest.raises(ZeroDivisionError):
        held / 0
