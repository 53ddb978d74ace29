"""Every public function is exported under its name, and every operator with a name is public."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from inspect import getattr_static, getdoc, getsource, isclass, isfunction, signature
from pkgutil import walk_packages
from types import ModuleType

import pytest

import tcalc as tc
from tcalc import ops
from tcalc.graph.arraylike import surface
from tcalc.graph.operators import TABLE
from tests.shared import library_rows

# Reached through methods, operators or NumPy's functions only.
HIDDEN = {
    "array_function", "array_ufunc", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor",
    "differentiate", "evaluate", "getitem", "repr_latex", "str", "subs",
}  # fmt: skip


OPS = [import_module(found.name) for found in walk_packages(ops.__path__, "tcalc.ops.")]
EXPORTING = [module for module in OPS if hasattr(module, "__all__")]


@pytest.mark.parametrize("module", EXPORTING, ids=lambda module: module.__name__)
def test_exports_are_public(module: object) -> None:
    names = module.__all__  # type: ignore[attr-defined]
    assert len(set(names)) == len(names)
    assert all(surface[name] is getattr(module, name) for name in names)


@pytest.mark.parametrize("module", EXPORTING, ids=lambda module: module.__name__)
def test_exports_are_defined_where_they_are_listed(module: ModuleType) -> None:
    imported = {
        alias.asname or alias.name
        for node in ast.walk(ast.parse(getsource(module)))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert not imported.intersection(module.__all__)


def reachable(name: str) -> bool:
    return hasattr(tc, name) or hasattr(tc.linalg, name)


def test_public_functions_are_exported() -> None:
    functions = [name for name in surface if not name.startswith("ndarray.")]
    assert not [name for name in functions if name not in HIDDEN and not reachable(name)]


def test_operators_are_public() -> None:
    # Parts of derivatives and variants that are chosen by an argument.
    internal = {
        "iota", "norm2", "gaps", "lower_half", "lower_ones", "eigh_nan", "eigh_epsilon",
        "det_sign", "column_signs", "lower_triangle", "inverse_definite", "logdet_definite",
        "cholesky_pullback", "squared_distances", "selection", "indicator",
        "leading_rows", "lower_trapezoid", "upper_ones", "svd_gaps", "svd_reciprocal", "merge_axes",
        "least_squares_inverse", "symmetric_part",
    }  # fmt: skip
    # Rows of a family are made when an expression needs them; its first one is public.
    known = {name for name, row in TABLE.items() if reachable(name) or row.family}
    assert not {row.name for row in library_rows()} - internal - known


FUNCTIONS = {
    name: getattr(module, name)
    for module in (tc, tc.linalg)
    for name in dir(module)
    if not name.startswith("_") and isfunction(getattr(module, name))
}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_public_function_tells_its_parameters_and_results(name: str) -> None:
    function = FUNCTIONS[name]
    text = getdoc(function) or ""
    wanted = ["Parameters\n----------\n", "Returns\n-------\n"]
    places = [text.find(section) for section in wanted if text.count(section) == 1]
    assert 0 < places[0] < places[-1] if signature(function).parameters else wanted[1] in text
    section = text.split(wanted[0])[-1].split(wanted[1])[0]
    entries = re.findall(r"^([\w*, \\]+?)(?: :.*)?$", section, re.MULTILINE)
    told = {word.strip(" *\\") for entry in entries for word in entry.split(",")}
    assert not signature(function).parameters.keys() - told - {"operands", "args", "options"}


CLASSES = {
    name: c for name in dir(tc) if not name.startswith("_") and isclass(c := getattr(tc, name))
}


def described(kind: type) -> set[str]:
    """The names in the sections Attributes of a class and its bases."""
    sections = [(base.__doc__ or "").partition("Attributes\n")[2] for base in kind.__mro__]
    entries = re.findall(r"^ *([\w, ]+) : ", "\n".join(sections), re.MULTILINE)
    return {name.strip() for entry in entries for name in entry.split(",")}


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_every_public_class_tells_its_methods_and_attributes(name: str) -> None:
    kind = CLASSES[name]
    assert (kind.__doc__ or "").strip()
    own = [n for n in dir(kind) if not n.startswith("_") and not hasattr(Exception, n)]
    silent = {n for n in own if not (getattr_static(kind, n).__doc__ or "").strip()}
    assert not silent - described(kind)


NAMESPACES = [
    "tcalc.autograd", "tcalc.autograd.extend", "tcalc.autograd.optimizers",
    "tcalc.autograd.test_util", "tcalc.autograd.fixed_points",
    *(found.name for found in walk_packages(tc.scipy.__path__, "tcalc.scipy.")),
]  # fmt: skip


@pytest.mark.parametrize("name", NAMESPACES)
def test_functions_of_other_libraries_names_tell_what_they_are(name: str) -> None:
    module = import_module(name)
    functions = {
        n: f
        for n, f in vars(module).items()
        if not n.startswith("_") and isfunction(f) and f.__module__ == name
    }
    assert not [n for n, f in functions.items() if not (getdoc(f) or "").strip()]


def stated_for_type_checkers() -> dict[str, str]:
    """The names that only type checkers import, and where they stand, as rows that come late."""
    module = ast.parse(getsource(tc))
    (apart,) = [node for node in module.body if isinstance(node, ast.If)]
    return {
        alias.name: f".{node.module}:{alias.name}"
        for node in apart.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_names_that_are_imported_late_are_those_that_type_checkers_read() -> None:
    program = "import tcalc; print(dict(tcalc._later.data))"  # here others were named already
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ast.literal_eval(shown.stdout.decode()) == stated_for_type_checkers()
    assert set(stated_for_type_checkers()) <= set(dir(tc)) & set(tc.__all__)
    with pytest.raises(AttributeError, match="no attribute 'to_klingon'"):
        tc.to_klingon  # noqa: B018


def test_numbers_of_an_expression_need_no_parser_printer_or_compressed_tensor() -> None:
    program = (
        "import sys, tcalc as tc\n"
        "x = tc.var('x', 'n')\n"
        "step = tc.compile(tc.hessian(tc.sum(tc.exp(x)), x), backend='numpy')\n"
        "assert step(x=[0.0, 0.0])[1, 1] == 1\n"
        "print(*sorted({m.split('.')[1] for m in sys.modules if m.startswith('tcalc.')}))\n"
        "assert str(x) == 'x' and x._repr_latex_() and tc.parse('2*y', y='n') is not None"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    loaded = set(done.stdout.decode().split())
    assert {"graph", "calculus", "backends"} <= loaded
    assert not loaded & {"app", "compression", "forms", "languages", "minimise", "structured"}
