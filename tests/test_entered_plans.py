"""Plans, compiled functions and commands, where few programs go."""

from __future__ import annotations

import operator
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.sparse

import tcalc as tc
from tcalc.app.cli import main
from tcalc.graph.trees import leaves

x, y, z = tc.var("x", "n"), tc.var("y", "n"), tc.var("z", "m")
A, X, G = tc.var("A", ("n", "n")), tc.var("X", ("m", "n")), tc.var("G", ("m", "n"))
RNG = np.random.default_rng(3)
DATA: dict[str, np.ndarray] = {
    "x": RNG.normal(size=6), "y": RNG.normal(size=6), "z": RNG.normal(size=4),
    "X": np.where(RNG.random((4, 6)) < 0.5, RNG.normal(size=(4, 6)), 0),
    "G": RNG.normal(size=(4, 6)),
}  # fmt: skip

# --- sparse data ----------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("spec", [
    "ij,j,ik->jk:Xx.X", "ij,j,k,ik->jk:Xxy.X", "ij,i,ik->jk:Xz.X", "ij,,ik,->jk:X.X",
    "ij,kj,i->ik:XXz", "ij,kj,i,k,j->ik:XXzzy", "ij,j,i,ik->jk:XxzG", "ij,i,j,kj->ik:XzxG",
    "ij,i,j->:Xzx", ",ij,->i:X", "ij,ij,->:XG",
])  # fmt: skip
def test_weighted_sparse_matrices_in_products(spec: str, backend: str) -> None:
    words, _, names = spec.partition(":")
    operands, given = list[tc.Expr](), iter(names.replace(".", ""))
    values: list[Any] = []
    for word in words.partition("->")[0].split(","):
        name = next(given) if word else ""
        operands.append({"x": x, "y": y, "z": z, "X": X, "G": G}[name] if name else x[1])
        values.append(DATA[name] if name else DATA["x"][1])
    e = tc.einsum(words, *operands)
    data = {name: DATA[name] for name in e.variables}
    data["X"] = scipy.sparse.csr_array(DATA["X"])
    found = tc.compile(e, backend=backend)(data)
    np.testing.assert_allclose(found, np.einsum(words, *values), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("e", [
    X * z[:, None], tc.einsum("ij,ik->ijk", X, G), tc.sum(tc.exp(X * x)),
])  # fmt: skip
def test_products_that_would_write_a_sparse_matrix_out(e: Any) -> None:
    data = {name: DATA[name] for name in e.variables}
    with pytest.raises(TypeError, match=r"X is sparse, and .* would need all of its entries"):
        e({**data, "X": scipy.sparse.csr_array(DATA["X"])})


def test_entries_of_sparse_data_that_stand_twice_are_added() -> None:
    entries = np.array([1.0, 2, 3, 4]), np.array([1, 1, 0, 5]), np.array([0, 2, 2, 3, 4])
    twice = scipy.sparse.csr_array(entries, shape=(4, 6))
    dense = twice.toarray()
    products = (X @ x, dense @ DATA["x"]), (X.T @ X, dense.T @ dense), (tc.sum(X * X), 9 + 9 + 16)
    for e, wanted in products:
        found = e({"X": twice, **{name: DATA[name] for name in e.variables if name != "X"}})
        np.testing.assert_allclose(found, wanted)
    assert twice.nnz == 4  # the caller's matrix stays as it is
    assert not twice.has_canonical_format


# --- compiled functions ---------------------------------------------------------------------------


def test_a_function_of_many_extents_forgets_some() -> None:
    f = tc.compile(tc.sum(x * x) * x[0], backend="numpy")
    for n in (*range(1, 70), 1, 2, 69):
        assert f(x=np.full(n, 2.0)) == 8 * n


def test_extents_may_be_data() -> None:
    f = tc.compile(x * tc.sum(tc.ones("m")) + tc.arange("n"), data={"m": 7})
    np.testing.assert_array_equal(f(x=DATA["x"]), 7 * DATA["x"] + np.arange(6))
    assert tc.compile(tc.sum(z), data={"m": 4, "z": DATA["z"]})() == DATA["z"].sum()
    with pytest.raises(tc.ShapeError, match="m"):
        tc.compile(tc.sum(z), data={"m": 3, "z": DATA["z"]})


def test_reads_around_an_axis_without_entries() -> None:
    e = tc.parse_index("f[i=0..m-5, j=0..n-1] = x[mod(i+j, n)]", x="n", X=("m", "n"))
    around = np.add.outer(np.arange(3), np.arange(6)) % 6
    np.testing.assert_array_equal(e(x=DATA["x"], m=7), DATA["x"][around])
    assert e(x=DATA["x"], m=4).shape == (0, 6)
    total = tc.parse_index("f[j=0..n-1] = sum[i=0..m-5](x[mod(i+j, n)]^2)", x="n", X=("m", "n"))
    np.testing.assert_allclose(total(x=DATA["x"], m=7), (DATA["x"] ** 2)[around].sum(0))
    np.testing.assert_array_equal(total(x=DATA["x"], m=4), np.zeros(6))


CUBES = tc.sum(x**2 * y) + tc.sum(y**3)


def second(a: tc.Expr, b: tc.Expr) -> Any:
    return tc.jacobian(tc.grad(CUBES, a), b)


def test_compressed_second_derivatives_in_nests_of_any_order() -> None:
    at = {"x": DATA["x"], "y": DATA["y"]}
    wanted = {"xx": np.diag(2 * at["y"]), "xy": np.diag(2 * at["x"]), "yx": np.diag(2 * at["x"]),
              "yy": np.diag(6 * at["y"])}  # fmt: skip
    named = {"x": x, "y": y}
    nests: list[Any] = [
        ["xx", "yy"], ("xy", ["yy", "xx"]), [["xx", "yx"], ["xy", "yy"]], ["xx", "xy", "yx", "yy"],
        {"a": ["xx", "yy"], "b": ["xy", "yx"]}, ["xx", ["xy", "yx", "yy"]],
    ]  # fmt: skip

    def filled(nest: Any) -> Any:
        if isinstance(nest, str):
            return second(*[named[letter] for letter in nest])
        if isinstance(nest, dict):
            return {key: filled(part) for key, part in nest.items()}
        return type(nest)([filled(part) for part in nest])

    for nest in nests:
        found = tc.compile(filled(nest), structured=True)(at)
        assert len(found) == len(nest)
        for tensor, pair in zip(leaves(found), leaves(nest), strict=True):
            np.testing.assert_allclose(tensor.tomatrix(), wanted[pair], err_msg=str(nest))


def test_blocks_of_compressed_hessians_in_a_tuple() -> None:
    whole = tc.hessian(CUBES, (x, y))
    found = tc.compile((tc.hessian(CUBES, y), whole), structured=True)(x=DATA["x"], y=DATA["y"])
    b = 2 * np.diag(DATA["x"])
    wanted = np.block([[2 * np.diag(DATA["y"]), b], [b, 6 * np.diag(DATA["y"])]])
    np.testing.assert_allclose(found[0].tomatrix(), wanted[6:, 6:])
    np.testing.assert_allclose(found[1].tomatrix(), wanted)


def test_functions_whose_parameters_nobody_tells() -> None:
    second_of = operator.itemgetter(1)
    np.testing.assert_array_equal(tc.grad(second_of)(DATA["x"]), np.eye(6)[1])
    with pytest.raises(TypeError, match="argument 0 is not an array of real numbers: 'a'"):
        tc.grad(second_of)("a")
    with pytest.raises(TypeError, match="argument 1 is missing: 1 given"):
        tc.grad(second_of, 1)(DATA["x"])


# --- commands -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "told"), [
    (["derive", "x'*x", "--wrt=--"], "--wrt: expected a value, not '--'"),
    (["derive", "x'*x", "--var", "x=n", "--wrt", "x", "--compress", "--to", "latex"],
     "--compress prints structures: it goes without --to and --out"),
    (["derive", "x'*x", "--var", "x=n", "--wrt", "x", "--compress", "--out", "f.tex"],
     "--compress prints structures: it goes without --to and --out"),
    (["serve", "--port", "8123"], "the web form needs tcalc_web"),
])  # fmt: skip
def test_commands_that_are_refused(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    with mock.patch.dict(sys.modules, {"tcalc_web.__main__": None}):
        assert main(words) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("tcalc: ")
    assert told in err
    assert not list(tmp_path.iterdir())


def test_the_web_form_is_served_where_it_is_asked_for() -> None:
    served = mock.Mock(return_value=5)
    module = mock.Mock(serve=served)
    with mock.patch.dict(sys.modules, {"tcalc_web": mock.Mock(), "tcalc_web.__main__": module}):
        assert main(["serve", "--port", "8123", "--host", "::1", "--proxies", "10.0.0.1"]) == 5
    served.assert_called_once_with("::1", 8123, "10.0.0.1")


@pytest.mark.parametrize(("error", "status", "told"), [
    (MemoryError(), 2, "tcalc: not enough memory for arrays of these extents\n"),
    (KeyboardInterrupt(), 130, "tcalc: interrupted\n"),
])  # fmt: skip
def test_commands_that_end_early(
    error: BaseException, status: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with mock.patch("tcalc.app.cli.write_gallery", side_effect=error):
        assert main(["gallery", "nowhere"]) == status
    assert capsys.readouterr().err.endswith(told)


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_commands_with_closed_streams(closed: str) -> None:
    line = f'{sys.executable} -m tcalc derive "x\'*x" --var x=n --wrt x {closed}'
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    wanted = "" if closed == ">&-" else "2*x\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, wanted, "")
