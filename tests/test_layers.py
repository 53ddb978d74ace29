"""The house as a drawing, and the checks that the code still is what the drawing shows.

Modules are read with `ast`, not imported, so an import inside a function counts as any other.
"""

from __future__ import annotations

import ast
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# A module imports from rows below its own, and a package's own file from the package's modules.
# `a.*` is every module inside the package a that has no row of its own.
HOUSE = """
    __main__
    cli
    demo
    __init__
    newton
    frontends.* printers.* explain check optimize assembly
    frontends.matrix_inference frontends.index_conditions printers.layout printers.selfcheck
    printers.repeated printers.sharing
    frontends.matrix_factors frontends.index_arrays printers.matrix_form printers.products
    printers.index_sums
    frontends.matrix_functions frontends.matrix_types frontends.index_ranges frontends.index_values
    frontends.matrix_syntax frontends.index_integers frontends.index_syntax printers.style
    printers.languages printers.indexed
    frontends.index_words
    frontends.operators frontends.library
    frontends.lexer frontends.dimensions
    transforms
    tracing
    batches folding
    calculus compile blocks comprehensions
    nested
    binding nest backends.c structured compress fold
    backends.*
    solvers.elimination solvers.subspace pieces
    solvers.schur
    solvers.choose
    solvers.lowrank
    solvers.*
    solvers.base solvers.dense
    terms
    contract
    backends.c_parts
    backends.c_library backends.c_source
    backends.c_compiler backends.c_matrices
    backends.c_loops
    backends.numpy_tiles
    backends.numpy_kernels
    backends.numpy_tables backends.numpy_windows backends.numpy_correlations
    backends.numpy_loops
    backends.numpy_matrices
    plan
    lowering
    sums
    variants factoring
    memory lower flat windows
    tables
    pairs
    paths inverses loops halves correlations
    rows
    layouts
    twins failures
    steps
    ops.fold
    ops.loop_ahead
    ops.loop_rules
    ops.looping
    ops.loop_units
    properties derive linalg bands
    rules.*
    joining expand
    rewrite facts indexing
    ops.lapack ops.norms ops.definite ops.pullbacks ops.distances ops.matrix_functions ops.spectral
    slicing diagonals
    batching accesses
    ops.selection
    ops.svd ops.places
    ops.*
    ops.triangles ops.elementwise ops.packed
    ops.guard ops.row ops.matrices
    views
    array
    applied
    normal
    products
    op labels declare
    captures
    indices
    expr
    surface elimination
    polyhedra
    smith extents
    affine
    errors progress byte_counts known trampoline
"""

# Imports between modules of one row.
NEIGHBOURS: set[tuple[str, str]] = set()

# Imports that exist for type checkers only, and point up.
TYPES_ONLY = {("expr", "op"), ("surface", "expr"), ("printers.selfcheck", "printers.code")}

# Longer than a reader takes in at once, and why it is one room nevertheless.
LONG: dict[str, str] = {
    "tcalc/normal.py": "products and sums build each other: one recursion",
}
LINES = 400

# Modules that spell operators' names: the rows, the rules, and what users write (Python's operators
# and methods, public names, the languages' aliases).
NAME_PLACES = ("ops.*", "rules.*", "surface", "array", "linalg", "__init__", "frontends.*")

# Words that name an operator and also something else: these mean the other thing.
OTHER_MEANINGS = {
    "folding": {"fold"},  # what users call, of which not all is a loop
    "printers.latex": {"iota"},  # the Greek letter
    "elimination": {"floor", "max", "min"},  # bounds of sums
}


@cache
def modules(folder: str) -> dict[str, Path]:
    """Files below a folder of the repository by dotted name without that folder."""
    found = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        parts = path.relative_to(ROOT / folder).with_suffix("").parts
        if parts[-1] == "__init__" and len(parts) > 1:
            parts = parts[:-1]
        found[".".join(parts)] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def types_only(module: ast.Module) -> set[ast.stmt]:
    """Statements below `if TYPE_CHECKING`."""
    found = set()
    for node in ast.walk(module):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for statement in node.body:
                found.update(n for n in ast.walk(statement) if isinstance(n, ast.stmt))
    return found


def targets(node: ast.stmt, importer: tuple[str, ...], known: dict[str, Path]) -> list[str]:
    """The modules of tcalc that one import statement loads."""
    if isinstance(node, ast.Import):
        dotted = [tuple(alias.name.split(".")) for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        start = importer[: len(importer) - node.level + 1] if node.level else ()
        base = start + tuple((node.module or "").split(".") if node.module else ())
        dotted = [
            (*base, a.name) if ".".join((*base, a.name)[1:]) in known else base for a in node.names
        ]
    else:
        return []
    return [".".join(name[1:]) or "__init__" for name in dotted if name[0] == "tcalc"]


def imports(types: bool) -> set[tuple[str, str]]:
    """(importer, imported) inside tcalc: at run time, or for type checkers only."""
    known = modules("tcalc")
    edges = set()
    for name, path in known.items():
        module = tree(path)
        package = ("tcalc", *(name.split(".") if name != "__init__" else ()))
        if path.name != "__init__.py":
            package = package[:-1]
        skipped = types_only(module)
        for node in ast.walk(module):
            if isinstance(node, ast.Import | ast.ImportFrom) and (node in skipped) is types:
                edges.update((name, other) for other in targets(node, package, known))
    return {(a, b) for a, b in edges if a != b}


def row(name: str) -> int:
    """Height in the drawing; a package stands half a row above its modules."""
    rows = [line.split() for line in reversed(HOUSE.strip().splitlines())]
    for height, patterns in enumerate(rows):
        if name in patterns:
            return 2 * height
    for height, patterns in enumerate(rows):
        if f"{name}.*" in patterns:
            return 2 * height + 1
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            return 2 * height
    raise AssertionError(f"tcalc/{name.replace('.', '/')}.py has no place in the drawing")


def test_every_module_has_a_place() -> None:
    assert all(row(name) >= 0 for name in modules("tcalc"))


def test_every_folder_is_a_package() -> None:
    folders = {path.parent for path in modules("tcalc").values()}
    missing = [f.relative_to(ROOT) for f in folders if not (f / "__init__.py").exists()]
    assert not missing


def test_imports_point_down() -> None:
    wrong = [
        f"{a} -> {b}"
        for a, b in sorted(imports(types=False) - NEIGHBOURS)
        if b not in modules("tcalc") or row(a) <= row(b)
    ]
    assert not wrong, f"against the drawing: {', '.join(wrong)}"


def test_imports_for_types_point_down_or_are_listed() -> None:
    upward = {(a, b) for a, b in imports(types=True) if row(a) < row(b)}
    assert upward <= TYPES_ONLY


def test_lists_of_exceptions_are_in_use() -> None:
    assert imports(types=False) >= NEIGHBOURS
    assert imports(types=True) >= TYPES_ONLY
    assert all(len(text(name).splitlines()) > LINES for name in LONG)
    assert all(words <= spelled(tree(modules("tcalc")[n])) for n, words in OTHER_MEANINGS.items())


def test_no_import_cycle() -> None:
    below: dict[str, set[str]] = {name: set() for name in modules("tcalc")}
    for a, b in imports(types=False):
        below[a].add(b)
    while leaves := {name for name, others in below.items() if not others & below.keys()}:
        below = {name: others for name, others in below.items() if name not in leaves}
    assert not below, f"a cycle passes through {', '.join(sorted(below))}"


def text(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


SOURCES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("tcalc", "benchmarks", "web", "tests")
    for path in modules(folder).values()
)


@pytest.mark.parametrize("file", [f for f in SOURCES if f not in LONG])
def test_files_are_short(file: str) -> None:
    lines = len(text(file).splitlines())
    assert lines <= LINES


@pytest.mark.parametrize("file", [f for f in SOURCES if f.startswith(("benchmarks/", "web/"))])
def test_users_of_the_package_use_public_names(file: str) -> None:
    module = tree(ROOT / file)
    loaded = [
        name
        for node in ast.walk(module)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        )
    ]
    inside = [name for name in loaded if name.startswith("tcalc.") and name != "tcalc.linalg"]
    assert not inside, f"imports {inside} from inside the package"
    aliases = {
        alias.asname or alias.name
        for node in ast.walk(module)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "tcalc"
    }
    private = [
        ast.unparse(node)
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_")
        if isinstance(node.value, ast.Name) and node.value.id in aliases
    ]
    assert not private, f"uses private names {private}"


def runs_text(node: ast.AST) -> bool:
    """A call that would execute data: eval, exec, unpickling, a shell."""
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    shell = any(
        k.arg == "shell" and not (isinstance(k.value, ast.Constant) and k.value.value is False)
        for k in node.keywords
    )
    dangerous = {"eval", "exec", "os.system", "os.popen", "__import__"}
    loads = called.split(".")[0] in ("pickle", "marshal", "cloudpickle", "dill")
    return shell or called in dangerous or (loads and called.endswith(("load", "loads")))


@pytest.mark.parametrize("file", [f for f in SOURCES if f.startswith(("tcalc/", "web/"))])
def test_no_text_is_run_as_code(file: str) -> None:
    lines = [f"{file}:{n.lineno}" for n in ast.walk(tree(ROOT / file)) if runs_text(n)]  # type: ignore[attr-defined]
    assert not lines


def spelled(module: ast.Module) -> set[str]:
    """String constants of a module, docstrings and keyword-like `__all__` entries left out."""
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(module)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return {
        node.value
        for node in ast.walk(module)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in documentation
    }


def test_operators_are_named_in_their_rows_only() -> None:
    from tcalc.op import TABLE

    for name in modules("tcalc"):
        if fnmatchcase(name, "ops.*"):
            import_module(f"tcalc.{name}")
    assert TABLE
    wrong = {
        name: sorted(found)
        for name, path in modules("tcalc").items()
        if not any(fnmatchcase(name, place) for place in NAME_PLACES)
        if (found := (spelled(tree(path)) & TABLE.keys()) - OTHER_MEANINGS.get(name, set()))
    }
    assert not wrong, f"operator names outside their rows: {wrong}"


def test_the_checks_see_what_they_must(tmp_path: Path) -> None:
    sample = ast.parse(
        "import os\n"
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from .op import Op\n"
        "def f(x):\n"
        "    from . import expr\n"
        "    return exec(x), os.popen(x), run(x, shell=True), loads(x), 'exp'\n"
    )
    known = modules("tcalc")
    loaded = [t for n in ast.walk(sample) for t in targets(n, ("tcalc", "ops"), known)]  # type: ignore[arg-type]
    assert "ops" in loaded or "ops.expr" in loaded
    loaded = [t for n in ast.walk(sample) for t in targets(n, ("tcalc",), known)]  # type: ignore[arg-type]
    assert sorted(loaded) == ["expr", "op"]
    assert len([n for n in ast.walk(sample) if runs_text(n)]) == 3
    assert len(types_only(sample)) == 1
    assert "exp" in spelled(sample)
