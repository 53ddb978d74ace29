"""Programs that every language of source is tried on: all tables of cases, orders 0 to 2."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

import tcalc as tc
from tcalc.graph.applications import apply
from tcalc.graph.nodes import Const, dimensions, postorder, variables
from tcalc.graph.normal import bare
from tests import (
    linalg_cases,
    loop_cases,
    place_cases,
    test_fold_integers,
    test_joining,
    until_cases,
)
from tests.cases import CASES
from tests.test_backends import of_matrices, of_places, of_row
from tests.test_fold import COUNT, targets
from tests.test_operators import APPLIED, ELEMENTWISE, differentiable, points
from tests.test_source_tables import CONSTANTS, DIMENSIONS, SELECTIONS


class Program(NamedTuple):
    """Expressions under names, data and extents for them, and how near values must be.

    `unsigned` names those whose columns have any sign: eigenvectors.
    """

    wanted: dict[str, tc.Expr]
    data: Mapping[str, Any]
    tolerance: float = 1e-11
    unsigned: frozenset[str] = frozenset()

    def constant(self) -> bool:
        """Are there constants of double precision?"""
        nodes = postorder([bare(e) for e in self.wanted.values()])
        return any(isinstance(node, Const) for node in nodes)

    def arrays(self) -> dict[str, np.ndarray]:
        """The data without extents."""
        return {name: np.asarray(a) for name, a in self.data.items() if not isinstance(a, int)}

    def extents(self) -> dict[str, int]:
        """Extents by name, those of arrays too."""
        found = {name: n for name, n in self.data.items() if isinstance(n, int)}
        for v in variables(self.wanted.values()).values():
            shape = zip(v.shape, np.shape(self.data[v.name]), strict=True)
            found |= {n: k for n, k in shape if isinstance(n, str)}
        return found

    def single(self) -> Program:
        """The same with data of single precision."""
        given = {
            name: np.asarray(a, np.float32) if np.asarray(a).dtype.kind == "f" else a
            for name, a in self.data.items()
        }
        return self._replace(data=given, tolerance=1e-4)


Named = Iterator[tuple[str, Program]]


def derivatives() -> Named:
    for case in CASES:
        e = case.expression()
        wanted = {
            f"{k} by {v}": tc.derivative(e, tc.var(v, case.shapes[v]), k)
            for v in case.targets
            for k in range(min(case.order, 2) + 1)
        }
        yield case.name, Program(wanted, case.sample())


def matrix_functions() -> Named:
    for case in linalg_cases.CASES:
        wanted, arrays = of_matrices(case)
        unsigned = linalg_cases.signless(case.name, wanted)
        yield case.name, Program(wanted, arrays, unsigned=unsigned)


def loops() -> Named:
    for case in loop_cases.CASES:
        e, names = loop_cases.expression(case, "T"), tuple(targets(case))
        gradients = dict(zip([f"by {name}" for name in names], tc.grad(e, names), strict=True))
        yield (
            case.name,
            Program({"value": e, **gradients}, {**loop_cases.data(case, COUNT), "T": COUNT}),
        )


def walks() -> Named:
    """Loops of which a state is an index, so that derivatives are taken along its history."""
    for walk in test_fold_integers.WALKS:
        e = test_fold_integers.loop(walk)
        wanted = {"value": e} | {
            f"by {walk.target}, {mode}": tc.jacobian(e, walk.target, mode=mode)
            for mode in ("forward", "reverse")
        }
        yield walk.name, Program(wanted, test_fold_integers.given(e))


def endings() -> Named:
    """Loops that end at a condition."""
    for case in until_cases.CASES:
        e = case.expression()
        wanted = {"value": e, **{f"by {v}": tc.grad(e, v) for v in case.targets}}
        yield case.name, Program(wanted, case.arrays(), 1e-9)


def places() -> Named:
    for case in place_cases.CASES:
        yield case.name, Program(*of_places(case))


def joining() -> Named:
    for k, (name, build) in enumerate(test_joining.CASES):
        x = tc.var(name, test_joining.SHAPES[name])
        e = build(x)
        wanted = {"value": e, "gradient": tc.grad(tc.sum(e * e), x)}
        yield f"{k} of {name}", Program(wanted, {name: test_joining.ARRAYS[name]})


def entries() -> Named:
    for row in ELEMENTWISE:
        variables = [tc.var(f"x{k}", "n") for k in range(len(row.core))]
        e = apply(row, *variables)
        wanted = {"value": e, "twice": 2 * e}
        wanted |= {f"gradient by x{k}": tc.grad(tc.sum(e), f"x{k}") for k in differentiable(row)}
        arrays = {x.name: p for x, p in zip(variables, points(row, 5), strict=True)}
        yield row.name, Program(wanted, arrays)
        data = {name: a[0] for name, a in arrays.items()}
        yield f"{row.name} of numbers", Program({"value": apply(row, *map(tc.var, data))}, data)


def rows() -> Named:
    for row, params in APPLIED:
        wanted, arrays = of_row(row, params)
        unsigned = linalg_cases.signless(row.name, wanted)
        yield f"{row.name} {params}", Program(wanted, arrays, unsigned=unsigned)
        one = {name: a[0] + a[0].T if row.meaning.symmetric else a[0] for name, a in arrays.items()}
        e = apply_one(row, params, one)
        if e is not None:
            yield f"{row.name} {params} alone", Program({"value": e}, one)
    for row, params in CONSTANTS:
        e = apply(row, params=params)
        yield f"{row.name} {params}", Program({"value": e, "squares": e * e}, DIMENSIONS)
    for row in SELECTIONS:
        g = tc.var("g", 5, integer=True)
        for params in row.admitted:
            at = {"g": np.array([2, 0, -1, 1, 1]), **DIMENSIONS}
            yield f"{row.name} {params}", Program({"value": apply(row, g, params=params)}, at)


def apply_one(row: Any, params: tuple[Any, ...], arrays: Mapping[str, np.ndarray]) -> Any:
    """A row that makes one array, of single matrices and vectors."""
    if row.parts:
        return None
    return apply(row, *[tc.var(name, a.shape) for name, a in arrays.items()], params=params)


X, Y, Z = tc.var("X", ("m", "n", "k")), tc.var("Y", ("k", "n", "p")), tc.var("Z", ("n", "m", "k"))
u, v, A = tc.var("u", "m"), tc.var("v", "k"), tc.var("A", ("m", "n"))
g, h = tc.var("g", "q", integer=True), tc.var("h", ("q", 2), integer=True)
B, z = tc.var("B", (4, 3)), tc.var("z", 4)
#: Three axes of different extents: the order in memory differs between languages.
AXES = {
    "turned": tc.transpose(X, (2, 0, 1)),
    "two axes summed": tc.einsum("mnk,knp->mp", X, Y),
    "a stack of products": tc.einsum("mnk,nmk->nk", X, Z),
    "one axis left": tc.einsum("mnk,nmk->k", X, Z),
    "products of a stack": tc.einsum("mnk,knp->nmp", X, Y),
    "outer": tc.einsum("mnk,knp->pnkm", X, Y),
    "flat": tc.ravel(X),
    "flat, as a matrix": tc.reshape(X, ("m*n", "k")),
    "matrix as a cube": tc.reshape(tc.exp(X), ("k", "m", "n")),
    "along the middle": X[:, g, :] * u[0],
    "two indices": X[:, h, h],
    "indices apart": X[g, :, g],
    "matrices of places": A[h],
    "added up": tc.segment_sum(tc.transpose(X, (1, 0, 2)), tc.var("s", "n", integer=True), 3),
    "sums": tc.sum(X, axis=1) + tc.outer(u, v),
    "sum of all": tc.sum(X) * X,
    "largest": tc.max(X, axis=(1, 2)) * u,
    "row and column": A + tc.sum(A, axis=0) + tc.sum(A, axis=1)[:, None],
    "diagonals": tc.einsum("i,ij->ijii", u, tc.einsum("m,n->mn", u, u)),
    "slices": X[::-1, 1:, ::2],
    "one place": X[1, :, -1] * tc.sum(v),
    "a window": tc.parse_index("y[i=0..k-r,m] = sum[j](w[j]*X[m,0,i+j])", X=("m", "n", "k"), w="r"),
    "empty": tc.sum(A[:, :0]) + tc.sum(A),
    "unit": tc.eye("m") + tc.outer(u, u) * tc.eye("m"),
}
EXTENTS = {"r": 2, "p": 5, "m": 2, "n": 3, "k": 4, "q": 4}
rng = np.random.default_rng(7)
DATA: dict[str, Any] = {
    "X": rng.normal(size=(2, 3, 4)), "Y": rng.normal(size=(4, 3, 5)),
    "Z": rng.normal(size=(3, 2, 4)), "A": rng.normal(size=(2, 3)), "u": rng.normal(size=2),
    "v": rng.normal(size=4), "w": rng.normal(size=2), "g": np.array([1, 0, -1, 1]),
    "h": np.array([[0, 1], [1, 1], [-1, 0], [0, 0]]), "s": np.array([2, 0, 2]),
}  # fmt: skip


def axes() -> Named:
    for name, e in AXES.items():
        wanted = {"value": e} | {
            f"gradient by {x}": tc.grad(tc.sum(e * e), x)
            for x, of in e.variables.items()
            if not of.integral
        }
        data = {name: DATA[name] for name in e.variables} | {
            "r": 2,
            "p": 5,
            "m": 2,
            "n": 3,
            "k": 4,
            "q": 4,
        }
        yield name, Program(wanted, data)


#: What is sorted is computed, or lies otherwise in memory than the rows that are sorted.
ORDERS = {
    "columns": tc.sort(B, axis=0),
    "turned": tc.sort(B.T),
    "computed": tc.sort(-tc.exp(B), axis=0) * B,
    "numbers": tc.sort(2 * z),
    "logarithms": tc.sort(tc.log(1 + B * B), axis=1),
    "integers": z[tc.argsort(-g)],
    "rows": B[tc.argsort(B[:, 0])],
    "axis of three": tc.sort(tc.var("X", (2, 3, 4)), axis=1),
    "medians": tc.median(B, axis=0) * tc.quantile(z, 0.3),
    "largest": z[tc.argmax(z * z)] * tc.ones(1),
    "between knots": np.interp(z, tc.var("K", 4), tc.var("F", 4)),
    "as many as are less": B[tc.sum(z[:, None] < 0.3, 0)],
    "t1": tc.sort(tc.var("t2", "t1")) * tc.sum(tc.ones("t1")),
}


def orders() -> Named:
    data = {
        "B": rng.normal(size=(4, 3)), "z": rng.normal(size=4), "t2": rng.normal(size=3), "t1": 3,
        "K": np.array([-1.0, -0.2, 0.4, 1.1]), "F": rng.normal(size=4),
        **DATA, **EXTENTS,
    }  # fmt: skip
    for name, e in ORDERS.items():
        free = [x for x, of in e.variables.items() if not of.integral]
        wanted = {"value": e} | {f"gradient by {x}": tc.grad(tc.sum(e * e), x) for x in free}
        chosen = {x: data[x] for x in (*e.variables, *dimensions([bare(e)])) if x in data}
        yield name, Program(wanted, chosen)


def gammas() -> Named:
    """Between poles on the left of 0."""
    at = np.array([-0.5, -2.5, -2.25, -1000.75, 3.5])
    x = tc.var("x", "n")
    for order in (1, 2, 3):
        yield f"polygamma of order {order}", Program({"value": tc.polygamma(order, x)}, {"x": at})
    yield "betaln", Program({"value": tc.betaln(x, 2.25)}, {"x": at[:2]})


#: What is summed, or read as a whole, where an extent is 0.
VOIDS = {
    "log of sums": tc.logsumexp(A, axis=1),
    "log of weighted sums": tc.log(tc.sum(tc.exp(A) * tc.var("b", "n"), axis=1)),
    "shares": tc.softmax(A, axis=0),
    "columns": tc.sum(A, axis=0),
    "columns and rows": A + tc.sum(A, axis=0) + tc.sum(A, axis=1)[:, None],
    "diagonal": tc.diag(tc.var("S", ("n", "n"))),
    "trace": tc.trace(tc.var("S", ("n", "n"))) * tc.ones(2),
    "a diagonal matrix": tc.diag(tc.var("b", "n")),
    "places": tc.var("b", "n")[g],
    "product": A @ tc.var("b", "n"),
}


def voids() -> Named:
    for name, e in VOIDS.items():
        wanted = {"value": e} | {
            f"gradient by {x}": tc.grad(tc.sum(e * e), x)
            for x, of in e.variables.items()
            if not of.integral
        }
        for sizes in ({"m": 0, "n": 0}, {"m": 2, "n": 0}, {"m": 0, "n": 2}):
            extents = {"q": 0, "r": 0, **sizes}
            shapes = {x: [extents.get(str(n), n) for n in v.shape] for x, v in e.variables.items()}
            data = {
                x: np.zeros(shape, np.int64 if e.variables[x].integral else float)
                for x, shape in shapes.items()
            }
            yield f"{name}, {sizes}", Program(wanted, data)


GROUPS: dict[str, Callable[[], Named]] = {
    f.__name__: f
    for f in (
        derivatives, matrix_functions, loops, walks, endings, places, joining, entries, rows, axes,
        orders, gammas, voids,
    )
}  # fmt: skip


def programs(group: str) -> dict[str, Program]:
    """Programs of a group by name, those without constants in single precision too."""
    found = {}
    for name, program in GROUPS[group]():
        found[name] = program
        if not program.constant():
            found[f"{name}, single"] = program.single()
    return found


def differences(program: Program, answer: Mapping[str, np.ndarray]) -> list[str]:
    """What differs from the values of plans: messages."""
    messages = []
    with np.errstate(all="ignore"):
        expected = tc.compile(program.wanted)(dict(program.data))
    for name, other in expected.items():
        value = answer[name]
        if (value.shape, value.dtype) != (other.shape, other.dtype):
            messages.append(f"{name}: {value.shape} {value.dtype}, not {other.shape} {other.dtype}")
            continue
        if name in program.unsigned:
            value, other = np.abs(value), np.abs(other)
        size = np.abs(other).max(initial=1, where=np.isfinite(other))
        with np.errstate(all="ignore"):
            same = (value == other) | (np.isnan(other) & np.isnan(value))
            error = np.where(same, 0, np.abs(value - other)).max(initial=0)
        if not error <= program.tolerance * size:
            messages.append(f"{name}: differs by {error / size:.1e}")
    return messages
