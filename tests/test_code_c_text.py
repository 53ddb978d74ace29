"""The text of printed C: loops, headers, names, self-checks."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special

import tcalc as tc
from tcalc.languages.source.c_header import header_of
from tcalc.languages.source.c_module import ROUTINES, loaded
from tests.c_programs import (
    COMPILER,
    STRICT,
    Job,
    built,
    called,
    compiled,
    needs_compiler,
    printed,
)

pytestmark = needs_compiler

X, w, c = tc.var("X", ("m", "n")), tc.var("w", "n"), tc.var("c")
A = tc.var("A", ("n", "n"))


def body(e: Any) -> str:
    """The statements of a function."""
    return tc.to_code(e, "c").rpartition("\nint f(")[2]


def test_a_chain_of_entries_is_one_loop_and_takes_no_memory() -> None:
    e = tc.sum(tc.exp(tc.sin(w) * w) / (1 + w * w)) * tc.sum(tc.sin(w))
    source = tc.to_code(e, "c")
    assert body(e).count("for (") == 1
    assert body(e).count("sin(") == 1
    assert "return 0;\n}\n\nint f" in source


def test_value_and_gradient_read_data_once() -> None:
    f = tc.sum(tc.softplus(X @ w))
    text = body({"value": f, "gradient": tc.grad(f, w)})
    assert text.count("low < m") == 1
    assert text.count("_rows(high - low, n, X + low * n, ") == 2


def test_no_unit_tensor_and_no_indicator_is_made() -> None:
    U, V = tc.var("U", ("m", "k")), tc.var("V", ("n", "k"))
    unit = tc.hessian(tc.sum((U @ V.T) ** 2) / 2, U)
    assert "==" not in body(unit)
    convolved = tc.build(20, lambda i: tc.sum(tc.build(5, lambda j: tc.var("x", 24)[i + j] ** 2)))
    assert "==" not in body(tc.grad(tc.sum(convolved), "x"))


def test_half_of_a_symmetric_product_is_computed() -> None:
    y = tc.var("y", "m")
    assert "symmetric_product(n, m" in body(X.T @ (tc.exp(y)[:, None] * X))
    assert "symmetric_product" not in body(X.T @ (tc.exp(y)[:, None] * X**2))


def test_matrices_lie_as_their_operands_do() -> None:
    y = tc.var("y", "m")
    weighted = X.T * tc.exp(y)
    text = body(weighted @ tc.exp(X))
    assert not re.search(r"\[i \* m \+ j\] = .*X\[j \* n \+ i\]", text)


def test_arrays_that_are_done_with_give_their_memory() -> None:
    chain = A
    for _ in range(6):
        chain = tc.sin(chain @ A)
    source = tc.to_code(tc.sum(chain), "c")
    assert "return (size_t)(n * n + n * n) * sizeof(real);" in source


def test_routines_do_not_write_where_they_read(tmp_path: Path) -> None:
    """Entry by entry an array may take the place of another one, in a routine's call it may not."""
    stack = tc.var("S", ("m", "n", "n"))
    e = tc.linalg.inv(tc.linalg.adj(tc.linalg.inv(tc.linalg.expm(tc.sin(stack)))))
    job = Job("chain", e, {"S": np.random.default_rng(0).normal(size=(3, 4, 4))}, {"m": 3, "n": 4})
    source = printed(job, 0)
    status, (found,) = called(built(source, tmp_path), source, "f0", job)
    assert status == 0
    np.testing.assert_allclose(found, job.expected()[0], rtol=1e-11)
    for call in re.findall(r"(?:inv|frechet)\((.*)\)\)$", body(e), re.MULTILINE):
        named = [word for word in re.findall(r"[A-Za-z]\w*", call) if re.match(r"t\d|S|out", word)]
        assert len(set(named)) == len(named)


def test_tensors_are_multiplied_as_matrices() -> None:
    """Where axes that stand together in memory do so in the result."""
    U, V = tc.var("U", ("m", "n", "k")), tc.var("V", ("k", "p"))
    assert "product(m * n, p, k, U, k, 1, V, p, 1, out)" in body(tc.einsum("mnk,kp->mnp", U, V))
    assert "product(p, n * k, m, " in body(tc.einsum("mnk,pm->pnk", U, tc.var("Y", ("p", "m"))))
    assert "product(k, p, m * n, " in body(
        tc.einsum("mnk,mnp->kp", U, tc.var("Y", ("m", "n", "p")))
    )
    apart = tc.einsum("mnk,npm->kp", U, tc.var("W", ("n", "p", "m")))
    assert "product(" not in body(apart)


def test_a_definite_matrix_is_factored_once_and_solved_with() -> None:
    P, y = tc.var("P", ("n", "n"), positive_definite=True), tc.var("y", "n")
    value = y @ tc.linalg.inv(P) @ y + tc.linalg.logdet(P)
    text = body(value)
    assert text.count("cholesky(") == 1
    assert "solve_definite(" in text
    assert "inverse_definite(" not in text
    text = body((value, tc.grad(value, P)))
    assert text.count("cholesky(") == 1
    assert text.count("inverse_definite(") == 1


def test_functions_of_numbers_stand_in_loops_that_have_vectors_of_them() -> None:
    """A loop with a sum in it has none, so that the function's loop stays apart."""
    x, y = tc.var("x", ("m", "k")), tc.var("y", ("n", "k"))
    distances = tc.sum((x[:, None, :] - y[None]) ** 2, axis=-1)
    lines = body(tc.exp(-distances)).splitlines()
    (at,) = [k for k, line in enumerate(lines) if "exp(" in line]
    assert lines[at - 1].endswith("j < n; j++)")


def innermost(text: str) -> list[str]:
    """Extents of the loops in which entries are added up."""
    return re.findall(r"< ([^;]+); \w+\+\+\)\n *\S+ \+=", text)


def test_sums_run_along_axes_that_are_long() -> None:
    """A few features of many points: differences of all pairs, their squares' sum, its gradient."""
    x, v = tc.var("x", ("n", "d")), tc.var("v", "d")
    kernel = tc.exp(-((x[:, None] - x[None]) ** 2) @ v)
    tree = (tc.sum(kernel**2), tc.grad(tc.sum(kernel**2), v))
    few = tc.to_code(tree, "c", sizes={"n": 300, "d": 4})
    many = tc.to_code(tree, "c", sizes={"n": 4, "d": 300})
    assert "d" not in innermost(few)
    assert "n" not in innermost(many)
    assert "n * n * d" not in few + many  # differences are made again where they are read


def test_products_with_vectors_take_several_rows_at_a_time(tmp_path: Path) -> None:
    """Also where a chain goes on with each entry, and of blocks where rows are read again."""
    V = tc.var("V", ("m", "m"))
    e = tc.tanh(V @ tc.tanh(X @ w))
    assert body(tc.sum(e)).count("multiply_rows(") == 2
    assert body(tc.sum(e)).count("tanh(") == 2
    assert "multiply_rows(m, " not in body(tc.grad(tc.sum(tc.softplus(X @ w)), w))
    both = (e, tc.grad(tc.sum(e), w))
    assert body(both[1]).count("_rows(m, ") == 2  # those of X; rows of V are read for both products
    assert body(both[1]).count("_rows(high - low, m, V + low * m, ") == 2
    rng, jobs = np.random.default_rng(1), list[Job]()
    for m in range(1, 10):  # fours of rows, and what is left
        arrays = {
            "V": rng.normal(size=(m, m)),
            "X": rng.normal(size=(m, 5)),
            "w": rng.normal(size=5),
        }
        jobs.append(Job(f"chain of {m}", both, arrays, {"m": m, "n": 5}))
    source = printed(jobs[0], 0)
    library = built(source, tmp_path)
    for job in jobs:
        status, found = called(library, source, "f0", job)
        assert status == 0
        for mine, expected in zip(found, job.expected(), strict=True):
            np.testing.assert_allclose(mine, expected, rtol=1e-12)


def test_what_one_row_needs_is_as_long_as_a_row() -> None:
    """An array of which each turn of a loop reads only what it has filled itself."""
    own = tc.sin(X) * X
    text = tc.to_code(own / tc.sum(own * own, axis=1)[:, None], "c")
    assert "return (size_t)(n) * sizeof(real);" in text
    shared = own / tc.sum(own * own, axis=0)
    assert "out[i * n + j] = out[i * n + j] / " in body(shared)  # all its rows are held


def test_diagonals_are_added_to_the_other_terms_of_a_sum() -> None:
    """Noise on a kernel's diagonal is added to it where it is, and held nowhere."""
    x, v = tc.var("x", ("n", "d")), tc.var("v", "d")
    kernel = tc.exp(-((x[:, None] - x[None]) ** 2) @ v) + tc.exp(c) * tc.eye("n")
    text = tc.to_code(kernel, "c", sizes={"n": 300, "d": 4})
    assert "return (size_t)(d * n + n) * sizeof(real);" in text
    assert "out[i * n + i] += exp(c);" in text


def test_products_made_for_products_lie_along_their_longer_axes() -> None:
    x = tc.var("x", ("n", "d"))
    pairs = (x[:, None] - x[None]) ** 2 * A[:, :, None]
    e = tc.einsum("ijk,ijl->kl", pairs, tc.sin(pairs) * pairs)
    text = tc.to_code(e, "c", sizes={"n": 300, "d": 4})
    product = re.search(r"product\(d, d, n \* n, \w+, n \* n, 1, \w+, 1, n \* n, out\)", text)
    assert product is not None


def test_distances_in_memory_are_products_of_extents() -> None:
    """Extents that are differences stand in parentheses."""
    U, V = (tc.var(name, ("k", "n-2", "n-2")) for name in "UV")
    text = body(tc.einsum("abc,dbc->ad", U, V))
    assert re.search(r"product\(k, k, .*, U, \(n - 2\) \* \(n - 2\), 1, V, 1, ", text)


def test_rows_of_zeros_are_one_loop() -> None:
    U, V = tc.var("U", ("m", "k")), tc.var("V", ("n", "k"))
    text = body(tc.hessian(tc.sum((U @ V.T) ** 2), U))
    assert "j < k * m * k" in text


def test_what_is_read_again_is_computed_once() -> None:
    y, z = tc.var("y", "n"), tc.var("z", "n")
    assert not re.search(r"\+= .*[-+] z\[", body(A @ (y + z) + A.T @ (y - z)))


def test_what_all_directions_share_is_not_copied() -> None:
    """A derivative's stack of directions at one matrix."""
    text = body(tc.jacobian(tc.linalg.expm(A), A))
    assert text.count("= A[") == 0
    assert re.search(r"expm_frechet\(n, 1, A, ", text)


def test_the_beginning_is_a_header(tmp_path: Path) -> None:
    source = tc.to_code(X @ w, "c", "g")
    (tmp_path / "g.h").write_text(header_of(source))
    user = '#include "g.h"\n#include "g.h"\nint main(void) { return (int)g_workspace(2, 3); }\n'
    (tmp_path / "user.c").write_text(user)
    (tmp_path / "g.c").write_text('#include "g.h"\n' + source)
    line = [str(COMPILER), *STRICT, "user.c", "g.c", "-o", "user", "-lm"]
    assert subprocess.run(line, cwd=tmp_path, check=False).returncode == 0
    assert subprocess.run(["./user"], cwd=tmp_path, check=False).returncode == 0


#: Names that mean something in C, in its library, or in what is printed.
NAMES = [
    "int", "I", "exp", "out", "work", "real", "NULL", "i", "j", "t1", "product", "sigmoid",
    "__LINE__", "_Bool", "é", "ª", "main", "status", "size_t", "ptrdiff_t", "SINGLE", "CBLAS", "y0",
]  # fmt: skip


def test_no_two_files_have_a_routine_of_one_name() -> None:
    owners: dict[str, str] = {}
    for file in ROUTINES:
        for name in loaded((file,)):
            assert owners.setdefault(name, file) == file, name


def test_names_are_words_that_mean_nothing_else(tmp_path: Path) -> None:
    given = [tc.var(name, ("n", name) if name.isascii() else "n") for name in NAMES]
    e = sum(
        [tc.sum(tc.exp(v) @ tc.sigmoid(v)[0] if v.ndim == 2 else v) for v in given], tc.const(0)
    )
    e = tc.sum(e) if e.ndim else e
    source = tc.to_code(e, "c")
    built(source, tmp_path)
    for v in given:
        assert v.name in source or not v.name.isascii()


KEYS = ["*/ int x; /*", "??/\n#error", "a b", "", "out", 3, "int", 1.5]


def test_keys_are_no_code(tmp_path: Path) -> None:
    given = {"c": np.array(1.5), "w": np.ones(2)}
    trees = [{key: 2 * c, "other": {key: w + c}} for key in KEYS]
    jobs = [Job(str(key), tree, given, {"n": 2}) for key, tree in zip(KEYS, trees, strict=True)]
    for program in compiled(jobs, tmp_path):
        status, (a, b) = program()
        assert status == 0
        assert a == 3
        np.testing.assert_array_equal(b, [2.5, 2.5])


@pytest.mark.parametrize("bad", ["int", "exp", "main", "malloc", "product", "1f", "f(x)", "__f"])
def test_names_of_functions_are_checked(bad: str) -> None:
    with pytest.raises(ValueError, match="identifier"):
        tc.to_code(w, "c", bad)


def test_a_factorisation_that_fails_returns_a_status(tmp_path: Path) -> None:
    job = Job("indefinite", tc.linalg.cholesky(A), {"A": -np.eye(3)}, {"n": 3})
    source = printed(job, 0)
    status, _ = called(built(source, tmp_path), source, "f0", job)
    assert status == 1


def functions_of_matrices() -> tc.Expr:
    regular = A / 4 + 3 * tc.eye("n")
    parts = [tc.linalg.expm(A), tc.linalg.sqrtm(regular), tc.linalg.logm(regular), tc.linalg.adj(A)]
    smooth = tc.linalg.matrix_function(A, tc.tanh)
    return sum([tc.sum(p * p) for p in parts], tc.sum(smooth * A) + tc.jv(1, A[0, 0]))


CHECKED = [
    tc.hessian(functions_of_matrices(), A),
    tc.grad(tc.sum(tc.softplus(X @ w)), w),
    tc.hessian(tc.sum(tc.softplus(X @ w)), w),
    tc.grad(tc.linalg.logdet(A), A),
    tc.grad(tc.sum(tc.linalg.cholesky(tc.var("P", (2, "n", "n"), positive_definite=True))), "P"),
    tc.grad(tc.sum(tc.var("S", ("n", "n"), symmetric=True) ** 3), "S"),
    tc.grad(tc.sum(w[tc.mod(tc.var("g", "q", integer=True), 2)] ** 2), w),
    tc.grad(tc.sum(tc.fold(lambda s, i: tc.tanh(A @ s + w[i]), tc.zeros("n"), "n")), A),
    tc.grad(tc.sum(tc.sort(w) * w**2), w),
    tc.grad(tc.sum(np.interp(w, tc.var("k", 3), tc.var("f", 3)) ** 2), "f"),  # and f() itself
]


@pytest.mark.parametrize("e", CHECKED, ids=lambda e: str(e)[:30])
def test_self_checks_pass_under_sanitizers(e: tc.Expr, tmp_path: Path) -> None:
    (tmp_path / "checked.c").write_text(tc.to_code(e, "c", check=True))
    sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover"]
    line = [str(COMPILER), *STRICT, *sanitize, "checked.c", "-o", "checked", "-lm"]
    if subprocess.run(line, cwd=tmp_path, check=False).returncode:  # a compiler without them
        subprocess.run([word for word in line if word not in sanitize], cwd=tmp_path, check=True)
    found = subprocess.run(
        ["./checked"], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"ASAN_OPTIONS": "detect_leaks=0"},
    )  # fmt: skip
    assert found.returncode == 0, found.stdout + found.stderr
    assert "central differences" in found.stdout


def test_a_self_check_fails_on_wrong_source(tmp_path: Path) -> None:
    source = tc.to_code(tc.grad(tc.sum(w**3), w), "c", check=True)
    right = "3.0 * (w[i] * w[i])"
    assert right in source
    (tmp_path / "wrong.c").write_text(source.replace(right, "2.9 * (w[i] * w[i])"))
    subprocess.run([str(COMPILER), "wrong.c", "-o", "wrong", "-lm"], cwd=tmp_path, check=True)
    assert subprocess.run(["./wrong"], cwd=tmp_path, check=False).returncode == 1


def test_errors_name_the_row_and_languages_that_have_it() -> None:
    own = tc.elementwise("cubed_there", lambda xp, a: a**3, lambda a, y: 3 * a**2, code={
        "matlab": "{0} .^ 3", "julia": "{0} ^ 3",
    })  # fmt: skip
    with pytest.raises(tc.UnsupportedError, match=r"no C source for cubed_there; .* julia, matlab: "
        r'tc.elementwise\("cubed_there", ..., code={"c": "..."}\)'):  # fmt: skip
        tc.to_code(own(w), "c")


def test_ones_own_function_has_its_own_text(tmp_path: Path) -> None:
    squared = tc.elementwise(
        "squared_in_c", lambda xp, a: a * a, lambda a, y: 2 * a, code={"c": "{0} * {0}"}
    )
    job = Job("own", tc.sum(squared(tc.exp(w))), {"w": np.arange(3.0)}, {"n": 3})
    source = printed(job, 0)
    assert source.count("exp(w[") == 1
    status, (found,) = called(built(source, tmp_path), source, "f0", job)
    assert status == 0
    np.testing.assert_allclose(found, np.exp(2 * np.arange(3.0)).sum())


def test_registers_are_filled_unless_loops_are_shorter() -> None:
    """Loops of fewer entries than a whole register has would call functions of one number."""
    e = tc.sum(tc.tanh(A @ tc.var("x", "n")))
    for sizes, whole in (({}, True), ({"n": 100}, True), ({"n": 4}, False)):
        assert ("prefer-vector-width=512" in tc.to_code(e, "c", sizes=sizes)) == whole


@pytest.mark.parametrize("flags", [(), ("-O3", "-march=native"), ("-march=native", "-DSINGLE")])
def test_functions_of_vectors_are_right_over_the_whole_range(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    """Functions of exp(-|x|), by instructions that a processor may have, beside NumPy's."""
    real = np.float32 if "-DSINGLE" in flags else np.float64
    edges = [0.0, -0.0, 1e-300, 1e-8, 0.3, 0.5, 1, 5, 18.9, 22, 300, 709, 746, 1e300, np.inf]
    with np.errstate(over="ignore"):
        at = np.array([*edges, *np.negative(edges), np.nan], real).astype(np.float64)
    made = tc.tanh(w), tc.sech(w), tc.sigmoid(w), tc.softplus(w), tc.logaddexp(w, -w)
    job = Job("decays", made, {"w": at}, {"n": len(at)})
    source = printed(job, 0)
    status, found = called(built(source, tmp_path, *flags), source, "f0", job, real)
    assert status == 0
    with np.errstate(over="ignore"):
        hyperbolic = np.tanh(at), 2 / (np.exp(np.abs(at)) + np.exp(-np.abs(at)))
        sums = np.logaddexp(0, at), np.logaddexp(at, -at)
        expected = *hyperbolic, scipy.special.expit(at), *sums
    for mine, wanted in zip(found, expected, strict=True):
        near = 8 * np.finfo(real).eps
        np.testing.assert_allclose(mine, wanted, rtol=near, atol=np.finfo(real).tiny)
    assert np.signbit(found[0][[1, 15]]).all()
