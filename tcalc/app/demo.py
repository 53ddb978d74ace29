"""``tcalc demo``: two fits on data that come with scikit-learn, printed and checked."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ..calculus.transforms import grad, hessian
from ..compression.compress import compress
from ..graph.nodes import Expr
from ..languages.matrix.parse import parse
from ..run.compile import compile
from ..support.errors import Error
from ..support.progress import Progress
from .check import check
from .explain import explain

LOSS = "sum(log(1 + exp(-y .* (X*w)))) + a/2 * w'*w"
LOSS_SHAPES: dict[str, Any] = {"X": ("m", "n"), "y": ("m",), "w": ("n",), "a": ()}
FACTORISATION = "norm2(T - U*V')^2"
PENALTY = 1.0
RANK = 10


def demo() -> int:
    """Run both fits and print them; 1 where a result differs from an independent one."""
    try:
        with Progress("loading scikit-learn"):
            from sklearn.datasets import load_breast_cancer, load_digits
            from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise Error("the demo needs scikit-learn: pip install 'tcalc[demo]'") from None
    features, labels = load_breast_cancer(return_X_y=True)
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    signs = np.where(labels == 1, 1.0, -1.0)
    good = _logistic(features, signs, LogisticRegression)
    images, _ = load_digits(return_X_y=True)
    return 0 if _factorisation(images / 16.0) and good else 1


# --- logistic regression --------------------------------------------------------------------------


def _logistic(X: Any, y: Any, model: Any) -> bool:
    m, n = X.shape
    print(f"1. Logistic regression with an l2 penalty, breast cancer data ({m} x {n})\n")
    f = parse(LOSS, **LOSS_SHAPES)
    g, H = grad(f, "w"), hessian(f, "w")
    print(f"   f        {LOSS}\n   gradient {g}\n   Hessian  {H}\n")
    data = {"X": X, "y": y, "a": PENALTY}
    _modes(f, {**data, "w": np.zeros(n)}, {"m": m, "n": n})
    with Progress("checking the Hessian"):
        report, error = check(f, "w", 2), _against_weights(H, data, n)
    print(f"   Hessian against numerical differentiation: {report}")
    print(f"   Hessian against X' diag(p (1-p)) X + a I:   relative error {error:.1e}\n")
    w, size, steps = _newton(compile({"f": f, "g": g, "H": H}, data=data), n)
    reference = model(C=1 / PENALTY, fit_intercept=False, tol=1e-12, solver="newton-cholesky")
    reference.fit(X, y)
    difference = float(np.abs(w - reference.coef_[0]).max())
    print(f"   Newton: gradient {size:.1e} after {steps} steps")
    print(f"   largest difference to scikit-learn's coefficients: {difference:.1e}\n")
    return report.passed and error < 1e-11 and size < 1e-8 and difference < 1e-6


def _modes(f: Expr, data: dict[str, Any], sizes: dict[str, int]) -> None:
    table = explain(f, "w", 2, sizes=sizes)
    print("   mode            predicted operations   peak memory   measured")
    for row in table.rows:
        step = compile(hessian(f, "w", row.mode))
        seconds = _best(lambda step=step: step(data))
        print(
            f"   {row.mode:15s} {row.flops:20.3g} {row.peak_bytes / 2**10:9.0f} KiB "
            f"{seconds * 1e6:8.0f} us"
        )
    print()


def _best(run: Any, repeat: int = 7) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def _against_weights(H: Any, data: dict[str, Any], n: int) -> float:
    """Relative error of the Hessian against the textbook form, written by hand."""
    w = np.linspace(-0.5, 0.5, n)
    p = 1 / (1 + np.exp(-data["y"] * (data["X"] @ w)))
    by_hand = (data["X"].T * (p * (1 - p))) @ data["X"] + PENALTY * np.eye(n)
    return float(np.abs(H(data, w=w) - by_hand).max() / np.abs(by_hand).max())


def _newton(step: Any, n: int) -> tuple[Any, float, int]:
    """Newton's method with step halving; the iterate, its gradient's size, and the steps taken."""
    w = np.zeros(n)
    now = step(w=w)
    for steps in range(50):
        size = float(np.abs(now["g"]).max())
        print(f"   step {steps}: f = {now['f']:.10f}, gradient {size:.1e}")
        if size < 1e-8:
            break
        direction = np.linalg.solve(now["H"], now["g"])
        for halving in range(40):
            trial = step(w=w - 0.5**halving * direction)
            if trial["f"] <= now["f"] + 1e-12 * abs(now["f"]):
                break
        w, now = w - 0.5**halving * direction, trial
    return w, size, steps


# --- matrix factorisation -------------------------------------------------------------------------


def _factorisation(T: Any) -> bool:
    n, m = T.shape
    print(f"2. Matrix factorisation, digits data ({n} x {m}), rank {RANK}\n")
    f = parse(FACTORISATION, T=("n", "m"), U=("n", "k"), V=("m", "k"))
    H = hessian(f, "U")
    print("   " + str(compress(H)).replace("\n", "\n   "))
    rng = np.random.default_rng(0)
    U, V = rng.normal(size=(n, RANK)), rng.normal(size=(m, RANK))
    step = compile({"f": f, "g": grad(f, "U")})
    structured = compile(H, structured=True)
    now, held = step(T=T, U=U, V=V), structured(T=T, U=U, V=V)
    dense = 8 * (n * RANK) ** 2
    print(f"   held: {held.nbytes} bytes; dense: {dense / 2**30:.1f} GiB")

    def solve() -> Any:
        (core,) = structured(T=T, U=U, V=V).cores
        return U - np.linalg.solve(core, step(T=T, U=U, V=V)["g"].T).T

    after = step(T=T, U=solve(), V=V)
    size = float(np.abs(after["g"]).max() / np.abs(now["g"]).max())
    print(f"   one Newton step in U: f from {now['f']:.1f} to {after['f']:.1f}, ", end="")
    print(f"gradient {size:.1e} of before, {_best(solve) * 1e6:.0f} us with the gradient")
    return size < 1e-10
