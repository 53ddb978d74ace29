"""tcalc.scipy: SciPy's values under SciPy's names, derivatives that agree with its differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.signal
import scipy.special
import scipy.stats

import tcalc as tc
from tcalc.scipy import linalg, signal, special, stats
from tests.test_operators import differences

RNG = np.random.default_rng(1)
#: Shape parameters of a distribution, points inside of its support, and outside.
SHAPES: dict[str, tuple[list[float], list[float], list[float]]] = {
    "beta": ([2.5, 1.7], [0.2, 0.9], [-0.5, 1.5]),
    "cauchy": ([], [-3.0, 0.4], []),
    "chi2": ([3.5], [0.3, 4.0], [-1.0]),
    "expon": ([], [0.2, 5.0], [-1.0]),
    "gamma": ([2.2], [0.3, 4.0], [-1.0]),
    "gumbel_r": ([], [-1.0, 3.0], []),
    "halfnorm": ([], [0.2, 3.0], [-1.0]),
    "invgamma": ([2.2], [0.3, 4.0], [-1.0]),
    "laplace": ([], [-2.0, 0.7], []),
    "logistic": ([], [-2.0, 0.7], []),
    "lognorm": ([0.7], [0.3, 4.0], [-1.0]),
    "norm": ([], [-2.0, 0.7], []),
    "pareto": ([2.2], [1.3, 4.0], [-1.0, 0.5]),
    "t": ([3.5], [-2.0, 0.7], []),
    "uniform": ([], [0.2, 0.8], [-0.5, 1.5]),
    "vonmises": ([1.5], [-2.0, 0.7], []),
    "weibull_min": ([1.7], [0.3, 4.0], [-1.0]),
    "bernoulli": ([0.3], [0.0, 1.0], [-1.0, 2.0]),
    "binom": ([5.0, 0.3], [0.0, 3.0, 5.0], [-1.0, 6.0]),
    "geom": ([0.3], [1.0, 4.0], [0.0, -1.0]),
    "nbinom": ([2.5, 0.3], [0.0, 4.0], [-1.0]),
    "poisson": ([2.5], [0.0, 4.0], [-1.0]),
}
METHODS = [
    (name, method)
    for name in SHAPES
    for method in getattr(stats, name)._formulas
    if method != "ppf"
]
LOCATED = {"loc": 0.3, "scale": 1.4}


def methods(name: str, method: str) -> tuple[Any, Any]:
    """SciPy's and ours."""
    theirs, ours = (getattr(getattr(module, name), method) for module in (scipy.stats, stats))
    return theirs, ours


def test_every_distribution_is_tested() -> None:
    ours = stats.CONTINUOUS | stats.DISCRETE
    assert ours.keys() == SHAPES.keys()


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_values(name: str, method: str) -> None:
    shapes, inside, outside = SHAPES[name]
    theirs, ours = (
        getattr(getattr(scipy.stats, name), method),
        getattr(getattr(stats, name), method),
    )
    x = tc.var("x", "n")
    places = [{}, {"loc": 1.0}] if name in stats.DISCRETE else [{}, LOCATED]
    for place in places:
        points = np.array(inside + outside) * place.get("scale", 1) + place.get("loc", 0)
        with np.errstate(all="ignore"):
            wanted = theirs(points, *shapes, **place)
        np.testing.assert_allclose(
            ours(x, *shapes, **place)(x=points), wanted, rtol=1e-11, atol=1e-14
        )
        np.testing.assert_array_equal(ours(points, *shapes, **place), wanted)  # SciPy's own


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_first_and_second_derivatives(name: str, method: str) -> None:
    """By the variable, location, scale and those shapes that have derivatives."""
    shapes, inside, _ = SHAPES[name]
    theirs, ours = (
        getattr(getattr(scipy.stats, name), method),
        getattr(getattr(stats, name), method),
    )
    discrete = name in stats.DISCRETE
    point = [inside[-1 if not discrete else 0], *shapes, *(() if discrete else (0.1, 1.2))]
    if discrete:
        point.append(0.0)
    else:
        point[0] = point[0] * 1.2 + 0.1
    variables = [tc.var(f"p{k}") for k in range(len(point))]
    at = {v.name: value for v, value in zip(variables, point, strict=True)}
    e = ours(*variables)
    moving = range(1, len(shapes) + 1) if discrete else range(len(point))
    for k in moving:
        if name == "binom" and k == 1:
            continue  # the number of draws is a whole one
        try:
            first = tc.grad(e, variables[k])
        except tc.UnsupportedError:
            assert method in ("cdf", "sf", "logcdf", "logsf")
            continue

        def moved(value: Any, k: int = k) -> Any:
            return theirs(*[value if j == k else p for j, p in enumerate(point)])

        wanted = differences(moved, np.array(point[k]), 1e-3)
        np.testing.assert_allclose(first(at), wanted, rtol=1e-7, atol=1e-9)
        again = lambda value, k=k, f=first: f({**at, f"p{k}": float(value)})  # noqa: E731
        second = differences(again, np.array(point[k]), 1e-3)
        np.testing.assert_allclose(
            tc.derivative(e, variables[k], order=2)(at), second, rtol=1e-7, atol=1e-8
        )


@pytest.mark.parametrize("name", ["gamma", "beta", "chi2", "t"])
def test_guards_make_no_parameter_depend_on_the_variable(name: str) -> None:
    """Outside of the support other points stand in for the variable only."""
    shapes, inside, outside = SHAPES[name]
    x = tc.var("x", "n")
    e = getattr(stats, name).cdf(x, *[tc.var(f"s{k}") for k in range(len(shapes))])
    points = np.array(inside + outside)
    at = {"x": points, **{f"s{k}": value for k, value in enumerate(shapes)}}
    density = getattr(scipy.stats, name).pdf(points, *shapes)
    np.testing.assert_allclose(tc.grad(tc.sum(e), x)(at), density, rtol=1e-11)
    np.testing.assert_allclose(tc.vjp(e, x, tc.ones("n"))(at), density, rtol=1e-11)


def test_keywords_broadcasting_and_lists() -> None:
    x, m, s = tc.var("x", 3), tc.var("m", (2, 1)), tc.var("s")
    data = {"x": RNG.normal(size=3), "m": RNG.normal(size=(2, 1)), "s": 1.5}
    for ours, theirs in [
        (stats.norm.logpdf(x, loc=m, scale=s), scipy.stats.norm.logpdf),
        (stats.norm.logpdf(x=x, loc=m, scale=s), scipy.stats.norm.logpdf),
    ]:
        wanted = theirs(data["x"], loc=data["m"], scale=data["s"])
        np.testing.assert_allclose(ours(data), wanted, rtol=1e-13)
    pair = stats.norm.cdf([s, 2 * s])
    np.testing.assert_allclose(pair(data), scipy.stats.norm.cdf([1.5, 3.0]))
    f = tc.grad(lambda a: np.sum(stats.t.logpdf(a, 4.0, scale=2.0)))
    point = data["x"]
    np.testing.assert_allclose(f(point), -5 * point / (16 + point**2), rtol=1e-12)


@pytest.mark.parametrize("points", [(3,), (5, 3), (2, 5, 3)])
@pytest.mark.parametrize("named", [False, True])
def test_normal_vectors(points: Sequence[int], named: bool) -> None:
    root = RNG.normal(size=(3, 3))
    data = {"x": RNG.normal(size=points), "m": RNG.normal(size=3), "C": root @ root.T + np.eye(3)}
    n: Any = "n" if named else 3
    x, m, c = tc.var("x", (*points[:-1], n)), tc.var("m", n), tc.var("C", (n, n))
    theirs = scipy.stats.multivariate_normal
    for method in ("logpdf", "pdf"):
        e = getattr(stats.multivariate_normal, method)(x, m, c)
        wanted = getattr(theirs, method)(data["x"], data["m"], data["C"])
        np.testing.assert_allclose(e(data), wanted, rtol=1e-12)
        for v in (x, m):
            moved: Callable[..., Any] = lambda a, v=v, method=method: np.sum(  # noqa: E731
                getattr(theirs, method)(*[a if w == v.name else data[w] for w in "xmC"])
            )
            found = tc.grad(tc.sum(e), v)(data)
            np.testing.assert_allclose(
                found, differences(moved, data[v.name], 1e-3), rtol=1e-6, atol=1e-9
            )
        along = RNG.normal(size=(3, 3))
        along = along + along.T
        shifted = lambda t, method=method, along=along: np.sum(  # noqa: E731
            getattr(theirs, method)(data["x"], data["m"], data["C"] + t * along)
        )
        slope = np.sum(tc.grad(tc.sum(e), c)(data) * along)
        np.testing.assert_allclose(
            slope, differences(shifted, np.array(0.0), 1e-3), rtol=1e-6, atol=1e-9
        )
    entropy = stats.multivariate_normal.entropy(m, c)
    np.testing.assert_allclose(entropy(data), theirs.entropy(data["m"], data["C"]), rtol=1e-12)


def test_covariances_in_short() -> None:
    x, point = tc.var("x", 3), RNG.normal(size=3)
    theirs = scipy.stats.multivariate_normal.logpdf
    for cov in (2.0, np.array([1.0, 2.0, 3.0])):
        found = stats.multivariate_normal.logpdf(x, np.zeros(3), cov)
        np.testing.assert_allclose(found(x=point), theirs(point, np.zeros(3), cov), rtol=1e-12)
    found = stats.multivariate_normal.logpdf(x)
    np.testing.assert_allclose(found(x=point), theirs(point), rtol=1e-12)
    singular = np.outer([1.0, 2, 3], [1, 2, 3])
    found = stats.multivariate_normal.logpdf(x, np.zeros(3), singular, allow_singular=True)
    at = np.array([2.0, 4, 6])
    wanted = theirs(at, np.zeros(3), singular, allow_singular=True)
    np.testing.assert_allclose(found(x=at), wanted, rtol=1e-10)
    with pytest.raises(tc.UnsupportedError, match="allow_singular"):
        stats.multivariate_normal.logpdf(x, np.zeros(3), tc.var("C", (3, 3)), allow_singular=True)


def test_dirichlet() -> None:
    a, x = tc.var("a", 3), tc.var("x", 3)
    alpha, point = np.array([0.5, 1.5, 2.5]), np.array([0.2, 0.3, 0.5])
    for method in ("logpdf", "pdf"):
        e = getattr(stats.dirichlet, method)(x, a)
        theirs = getattr(scipy.stats.dirichlet, method)
        np.testing.assert_allclose(e(a=alpha, x=point), theirs(point, alpha), rtol=1e-12)
        short = getattr(stats.dirichlet, method)(x[:2], a)
        np.testing.assert_allclose(short(a=alpha, x=point), theirs(point[:2], alpha), rtol=1e-12)
        moved = lambda p, theirs=theirs: theirs(point, p)  # noqa: E731
        np.testing.assert_allclose(
            tc.grad(e, a)(a=alpha, x=point), differences(moved, alpha, 1e-3), rtol=1e-7
        )


# --- special and linalg ---------------------------------------------------------------------------

x1, X2 = tc.var("x", 4), tc.var("X", (3, 4))
AT = {"x": RNG.uniform(0.2, 0.8, 4), "X": RNG.uniform(0.2, 0.8, (3, 4))}
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "logsumexp": lambda s, x, X: s.logsumexp(X),
    "logsumexp axis": lambda s, x, X: s.logsumexp(X, axis=1, keepdims=True),
    "logsumexp weights": lambda s, x, X: s.logsumexp(X, axis=0, b=[[1.0], [-0.3], [2.0]]),
    "softmax": lambda s, x, X: s.softmax(X),
    "softmax axis": lambda s, x, X: s.softmax(X, axis=0),
    "log_softmax": lambda s, x, X: s.log_softmax(X),
    "multigammaln": lambda s, x, X: s.multigammaln(x + 3, 4),
    "polygamma": lambda s, x, X: s.polygamma(2, x),
    "factorial": lambda s, x, X: s.factorial(x + 2),
    "comb": lambda s, x, X: s.comb(x + 6, 2.5),
    **{
        name: lambda s, x, X, name=name: getattr(s, name)(x)
        for name in (
            "j0", "j1", "y0", "y1", "i0", "i1", "k0", "k1", "expit", "logit", "erfinv", "ndtri",
            "gamma", "rgamma", "psi", "digamma", "gammaln", "erf", "erfc", "log_ndtr",
        )
    },
    "jv": lambda s, x, X: s.jv(2, x),
    "ive": lambda s, x, X: s.ive(1.5, x),
    "gammainc": lambda s, x, X: s.gammainc(2.5, x),
    "betainc": lambda s, x, X: s.betainc(2.5, 1.5, x),
    "xlogy": lambda s, x, X: s.xlogy(x, x + 1),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_special_functions(name: str) -> None:
    call = CALLS[name]
    wanted = call(scipy.special, AT["x"], AT["X"])
    np.testing.assert_allclose(call(special, x1, X2)(AT), wanted, rtol=1e-11)
    np.testing.assert_array_equal(call(special, AT["x"], AT["X"]), wanted)
    v = "X" if "max" in name or "sum" in name else "x"
    f = lambda a: np.sum(call(special, *[a if w == v else AT[w] for w in "xX"]))  # noqa: E731
    moved = lambda a: np.sum(  # noqa: E731
        call(scipy.special, *[a if w == v else AT[w] for w in "xX"])
    )
    found = tc.grad(f)(AT[v])
    np.testing.assert_allclose(found, differences(moved, AT[v], 1e-3), rtol=1e-6, atol=1e-8)


M = RNG.normal(size=(4, 4))
SPD, OTHER = M @ M.T + np.eye(4), RNG.normal(size=(4, 4)) + 4 * np.eye(4)
LINEAR: dict[str, Callable[[Any, Any, Any], Any]] = {
    "cholesky": lambda s, a, b: s.cholesky(a),
    "cholesky lower": lambda s, a, b: s.cholesky(a, lower=True),
    "cho_solve": lambda s, a, b: s.cho_solve(s.cho_factor(a, lower=True), b),
    "cho_solve upper": lambda s, a, b: s.cho_solve(s.cho_factor(a), b),
    "solve": lambda s, a, b: s.solve(a, b, assume_a="pos"),
    "solve transposed": lambda s, a, b: s.solve(b, a, transposed=True),
    "solve_triangular": lambda s, a, b: s.solve_triangular(a, b, trans="T", lower=True),
    "solve_triangular unit": lambda s, a, b: s.solve_triangular(a, b, unit_diagonal=True),
    "solve_banded": lambda s, a, b: s.solve_banded((2, 1), a, b),
    "solve_sylvester": lambda s, a, b: s.solve_sylvester(a, b, a + b),
    "inv": lambda s, a, b: s.inv(b, check_finite=False),
    "det": lambda s, a, b: s.det(b),
    "pinv": lambda s, a, b: s.pinv(b),
    "lstsq": lambda s, a, b: s.lstsq(b[:, :2], a[:, 0])[0],
    "norm": lambda s, a, b: s.norm(b, 1, axis=0),
    "svdvals": lambda s, a, b: s.svdvals(b),
    "svd": lambda s, a, b: s.svd(b[:2], full_matrices=False)[1],
    "eigvalsh": lambda s, a, b: s.eigvalsh(a),
    "eigvalsh of pairs": lambda s, a, b: s.eigvalsh(b + b.T, a),
    "eigh": lambda s, a, b: s.eigh(b + b.T, a)[1] ** 2,
    "expm": lambda s, a, b: s.expm(b / 4),
    "logm": lambda s, a, b: s.logm(a),
    "sqrtm": lambda s, a, b: s.sqrtm(a),
    "block_diag": lambda s, a, b: s.block_diag(a, b[:1], b[0]),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_algebra(name: str) -> None:
    call = LINEAR[name]
    a, b = tc.var("a", (4, 4)), tc.var("b", (4, 4))
    wanted = call(scipy.linalg, SPD, OTHER)
    found = call(linalg, a, b)(a=SPD, b=OTHER)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(call(linalg, SPD, OTHER), wanted)


@pytest.mark.parametrize("module", ["special", "linalg", "stats"])
def test_names_are_scipys(module: str) -> None:
    """No helper of ours hides a name; what is not SciPy's own stands in for it."""
    theirs, ours = getattr(scipy, module), getattr(tc.scipy, module)
    for name in theirs.__all__:
        found, original = getattr(ours, name), getattr(theirs, name)
        stands_in = hasattr(found, "__wrapped__") or hasattr(found, "_formulas")
        assert found is original or stands_in, name


# --- what is refused ------------------------------------------------------------------------------


def test_refusals_name_what_there_is() -> None:
    x = tc.var("x", "n")
    for call, words in [
        (lambda: special.logsumexp(x, return_sign=True), ["return_sign"]),
        (lambda: special.lambertw(x), ["special.lambertw"]),
        (lambda: linalg.schur(tc.var("A", (2, 2))), ["linalg.schur"]),
        (lambda: stats.norm.median(x), ["norm.median", "logpdf"]),
        (lambda: stats.norm.logpdf(x, sigma=2), ["sigma", "scale"]),
        (lambda: stats.beta.logpdf(x, 1.0), ["missing b"]),
        (lambda: linalg.svd(tc.var("A", (2, 3))), ["full_matrices"]),
        (lambda: linalg.cholesky(tc.var("A", (2, 2)), uplo="L"), ["uplo"]),
        (lambda: stats.norm(x), ["norm.logpdf"]),
    ]:
        with pytest.raises((TypeError, tc.Error)) as caught:
            call()
        assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: scipy.stats.norm.logpdf(x), "tcalc.scipy.stats"),
        (lambda x: scipy.special.logsumexp(x), "tcalc.scipy.special"),
        (lambda x: scipy.linalg.cho_factor(x), "tcalc.scipy"),
    ],
)
def test_scipys_own_functions_say_where_ours_are(call: Any, name: str) -> None:
    with pytest.raises(tc.TraceError, match=name.replace(".", r"\.")):
        call(tc.var("X", (3, 3)))


# --- convolutions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(
    ("one", "other"), [((7,), (3,)), ((3,), (7,)), ((5, 6), (2, 3)), ((4, 5, 3), (2, 2, 2))]
)
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_convolutions(name: str, one: Any, other: Any, mode: str) -> None:
    if mode == "same" and one == (3,) and name == "correlate":
        pytest.skip("SciPy cuts this one as no other")
    a, b = RNG.normal(size=one), RNG.normal(size=other)
    x, y = tc.var("x", one), tc.var("y", other)
    theirs, ours = getattr(scipy.signal, name), getattr(signal, name)
    e, wanted = ours(x, y, mode), theirs(a, b, mode)
    np.testing.assert_allclose(e(x=a, y=b), wanted, atol=1e-12)
    np.testing.assert_array_equal(ours(a, b, mode), wanted)
    against = RNG.normal(size=wanted.shape)
    for v, data in ((x, a), (y, b)):
        gradient = tc.grad(tc.sum(e * tc.const(against)), v)(x=a, y=b)
        along = RNG.normal(size=data.shape)
        moved = theirs(along, b, mode) if v is x else theirs(a, along, mode)
        np.testing.assert_allclose((gradient * along).sum(), (against * moved).sum(), atol=1e-11)
    if min(np.subtract(one, other)) >= 0:
        named = ours(tc.var("x", ("n", "m", "k")[: len(one)]), y, mode)
        np.testing.assert_allclose(named(x=a, y=b), wanted, atol=1e-12)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("swapped", [False, True])
def test_convolutions_along_chosen_axes_are_sums_of_plain_ones(mode: str, swapped: bool) -> None:
    a, b = RNG.normal(size=(2, 6, 3, 5)), RNG.normal(size=(3, 4, 2, 3))
    axes, dot_axes = ((3, 1), (2, 3)), ((2,), (0,))
    planes = a.transpose(0, 2, 3, 1), b.swapaxes(0, 1)
    if swapped:
        a, b, axes, dot_axes, planes = b, a, axes[::-1], dot_axes[::-1], planes[::-1]
    wanted = np.array(
        [
            [sum([scipy.signal.convolve(p, q, mode) for p, q in zip(one, other, strict=True)])
             for other in planes[1]]
            for one in planes[0]
        ]
    )  # fmt: skip
    x, y = tc.var("x", a.shape), tc.var("y", b.shape)
    options: Any = {"mode": mode, "axes": axes, "dot_axes": dot_axes}
    e = signal.convolve(x, y, **options)
    np.testing.assert_allclose(signal.convolve(a, b, **options), wanted, atol=1e-12)
    np.testing.assert_allclose(e(x=a, y=b), wanted, atol=1e-12)
    for v, data in ((x, a), (y, b)):
        along = RNG.normal(size=data.shape)
        gradient = tc.grad(tc.sum(e**2), v)(x=a, y=b)
        moved = signal.convolve(*((along, b) if v is x else (a, along)), **options)
        np.testing.assert_allclose((gradient * along).sum(), 2 * (wanted * moved).sum())
    with pytest.raises(ValueError, match="mode 'wide'"):
        signal.convolve(x, y, mode="wide", axes=axes, dot_axes=dot_axes)
