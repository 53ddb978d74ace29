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

# The drawing is the README's table of packages: a package reads rows above its own only, and of
# these the ones that its row and its docstring name. `support` may be read by all.
COMMON = "support"

# Imports that exist for type checkers only, and point up.
TYPES_ONLY = {
    ("graph.nodes", "graph.operators"),
    ("graph.arraylike", "graph.nodes"),
}

# Longer than a reader takes in at once, and why it is one room nevertheless.
LONG: dict[str, str] = {}
LINES = 400

# Modules that spell operators' names: the rows, the rules, and what users write (Python's operators
# and methods, public names, the languages' aliases).
NAME_PLACES = (
    "ops.*", "loops.*", "numpy.*", "rules.*", "forms.*", "graph.arraylike", "graph.formulas",
    "linalg", "__init__", "backends.c.rows", "backends.cupy.library",
    "languages.source.*", "languages.reading.*",
    "languages.matrix.*", "languages.index.*", "languages.einsum.*",
)  # fmt: skip

# Words that name an operator and also something else: these mean the other thing.
OTHER_MEANINGS = {
    "app.output": {"where"},  # a keyword
    "languages.writing.symbols": {"iota", "beta", "gamma"},  # the Greek letters
    "languages.templates": {"mod", "prod", "sqrt"},  # commands of LaTeX
    "integers.elimination": {"ceil", "floor", "max", "min"},  # bounds of sums
    "graph.extent_forms": {"min"},  # of extents
    "scipy.stats.continuous": {"beta", "gamma", "norm"},  # distributions
}


def text(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


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


def package(name: str) -> str:
    """The package that a module stands in, empty for files of tcalc itself."""
    path = modules("tcalc")[name]
    return (
        ""
        if name == "__init__"
        else name
        if path.name == "__init__.py"
        else name.rpartition(".")[0]
    )


def table() -> dict[str, tuple[str, set[str]]]:
    """What stands in every package and what it reads, in the README's order: lowest first."""
    lines = text("README.md").partition("| package | what stands there | reads |\n")[2].splitlines()
    rows = {}
    for line in lines[1:]:
        if not line.startswith("| "):
            break
        name, what, reads = [cell.strip() for cell in line.strip("|").split(" | ")]
        others = {r.strip(" `").replace("/", ".") for r in reads.split(",") if r.strip(" |")}
        rows[name.strip(" `").replace("/", ".")] = what, others
    return rows


def test_the_table_lists_the_packages() -> None:
    assert {package(name) for name in modules("tcalc")} == {"", *table()}


@pytest.mark.parametrize("name", table())
def test_docstrings_are_rows_of_the_table(name: str) -> None:
    what, reads = table()[name]
    documentation = ast.get_docstring(tree(modules("tcalc")[name])) or ""
    told, _, named = " ".join(documentation.split()).rpartition(" Reads ")
    assert told == what
    assert set(named.strip(".").split(", ")) - {"nothing"} == reads


def test_packages_read_what_the_table_says() -> None:
    found: dict[str, set[str]] = {name: set() for name in table()}
    for a, b in imports(types=False):
        assert b in modules("tcalc"), f"{a} imports {b}, which is not there"
        if package(a) and package(b) not in (package(a), COMMON):
            found[package(a)].add(package(b))
    assert found == {name: reads for name, (_, reads) in table().items()}


def test_packages_read_upper_rows_of_the_table() -> None:
    order = list(table())
    wrong = [
        f"{name} -> {other}"
        for name, (_, reads) in table().items()
        for other in reads
        if order.index(other) >= order.index(name)
    ]
    assert not wrong, f"against the order of the table: {', '.join(wrong)}"


def test_imports_for_types_point_down_or_are_listed() -> None:
    order = ["", *table()]
    upward = {
        (a, b)
        for a, b in imports(types=True)
        if order.index(package(a)) <= order.index(package(b)) and (a, b) not in TYPES_ONLY
    }
    together = imports(types=False) | upward
    assert not cycle(together), f"a cycle with imports for types: {cycle(together)}"


def test_lists_of_exceptions_are_in_use() -> None:
    assert imports(types=True) >= TYPES_ONLY
    assert all(len(text(name).splitlines()) > LINES for name in LONG)
    assert all(words <= spelled(tree(modules("tcalc")[n])) for n, words in OTHER_MEANINGS.items())


def cycle(edges: set[tuple[str, str]]) -> list[str]:
    """Modules on cycles of imports, and what imports them."""
    below: dict[str, set[str]] = {name: set() for name in modules("tcalc")}
    for a, b in edges:
        below[a].add(b)
    while leaves := {name for name, others in below.items() if not others & below.keys()}:
        below = {name: others for name, others in below.items() if name not in leaves}
    return sorted(below)


def test_no_import_cycle() -> None:
    assert not cycle(imports(types=False))


SOURCES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("tcalc", "benchmarks", "web", "tests")
    for path in modules(folder).values()
)


ROUTINES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("tcalc/**/*.c"))


def test_files_are_short() -> None:
    lines = {file: len(text(file).splitlines()) for file in (*SOURCES, *ROUTINES)}
    assert not {file: n for file, n in lines.items() if n > LINES and file not in LONG}


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


def test_no_text_is_run_as_code() -> None:
    files = [f for f in SOURCES if f.startswith(("tcalc/", "web/"))]
    nodes = ((f, n) for f in files for n in ast.walk(tree(ROOT / f)))
    assert not [f"{f}:{n.lineno}" for f, n in nodes if runs_text(n)]  # type: ignore[attr-defined]


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
    from tests.shared import library_rows

    for name in modules("tcalc"):
        if fnmatchcase(name, "ops.*") or fnmatchcase(name, "loops.*"):
            import_module(f"tcalc.{name}")
    own = {row.name for row in library_rows()}
    assert own
    wrong = {
        name: sorted(found)
        for name, path in modules("tcalc").items()
        if not any(fnmatchcase(name, place) for place in NAME_PLACES)
        if (found := (spelled(tree(path)) & own) - OTHER_MEANINGS.get(name, set()))
    }
    assert not wrong, f"operator names outside their rows: {wrong}"


def test_the_checks_see_what_they_must(tmp_path: Path) -> None:
    sample = ast.parse(
        "import os\n"
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from .graph.operators import Op\n"
        "def f(x):\n"
        "    from .graph import nodes\n"
        "    return exec(x), os.popen(x), run(x, shell=True), loads(x), 'exp'\n"
    )
    known = modules("tcalc")
    loaded = [t for n in ast.walk(sample) for t in targets(n, ("tcalc", "ops"), known)]  # type: ignore[arg-type]
    assert loaded
    loaded = [t for n in ast.walk(sample) for t in targets(n, ("tcalc",), known)]  # type: ignore[arg-type]
    assert sorted(loaded) == ["graph.nodes", "graph.operators"]
    assert len([n for n in ast.walk(sample) if runs_text(n)]) == 3
    assert len(types_only(sample)) == 1
    assert "exp" in spelled(sample)
