"""Parts of the code in which faults are planted, tests that meet them, and known survivors."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.documents import ROOT


def files(*patterns: str) -> tuple[str, ...]:
    """Paths from the repository's root, without files that only hold a docstring."""
    found = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    return tuple(str(path.relative_to(ROOT)) for path in found if path.name != "__init__.py")


@dataclass(frozen=True)
class Part:
    """Modules; with `texts`, faults are also planted in text that is compiled."""

    modules: tuple[str, ...]
    texts: bool = False


PARTS: dict[str, Part] = {
    "derivatives": Part(
        files("tcalc/accumulation/*.py", "tcalc/calculus/transforms.py",
              "tcalc/calculus/projection.py", "tcalc/ops/elementwise.py", "tcalc/ops/special.py",
              "tcalc/ops/bessel.py", "tcalc/ops/guard.py", "tcalc/ops/missing.py",
              "tcalc/ops/reductions.py", "tcalc/ops/ordering.py", "tcalc/ops/incomplete.py"),
    ),
    "matrix derivatives": Part(
        files("tcalc/ops/matrix/*.py"),
    ),
    "normal form": Part(
        files("tcalc/graph/normal.py", "tcalc/graph/products.py", "tcalc/graph/sums.py",
              "tcalc/graph/inlining.py", "tcalc/graph/orientation.py", "tcalc/graph/canonical.py",
              "tcalc/graph/retracing.py", "tcalc/graph/bound_variables.py"),
    ),
    "simplification": Part(
        files("tcalc/rules/*.py"),
    ),
    "index solving": Part(
        files("tcalc/integers/*.py", "tcalc/ops/affine_entries.py", "tcalc/ops/indicator.py",
              "tcalc/graph/extent_forms.py", "tcalc/languages/index/ranges.py",
              "tcalc/languages/index/iteration_space.py"),
    ),
    "compression": Part(
        files("tcalc/compression/*.py", "tcalc/structured/*.py", "tcalc/structured/terms/*.py",
              "tcalc/structured/solvers/*.py"),
    ),
    "plans": Part(
        files("tcalc/plan/products/*.py", "tcalc/plan/lowering/*.py", "tcalc/contraction/*.py"),
    ),
    "loops": Part(
        files("tcalc/loops/*.py"),
    ),
    "kernels": Part(
        files("tcalc/backends/c/rows.py", "tcalc/backends/c/spelling.py",
              "tcalc/backends/c/powers.py", "tcalc/backends/c/moves.py",
              "tcalc/backends/c/loopnests.py", "tcalc/backends/c/source.py",
              "tcalc/backends/c/matrices.py", "tcalc/backends/c/tiles.py",
              "tcalc/plan/kinds/*.py", "tcalc/backends/numpy/kernels.py",
              "tcalc/backends/numpy/matrices.py", "tcalc/backends/numpy/strided.py",
              "tcalc/backends/numpy/gathers.py"),
        texts=True,
    ),
}  # fmt: skip

#: Names of test files that meet no faults: of other parts of the code, of printed programs, of what
#: stands in for devices, of what starts threads and processes, and of the documents.
OUTSIDE = re.compile(
    "api|auto|autograd_names|benchmarks.*|c_calls|c_loop.*|c_outlining|cli|code.*|cupy.*|dask.*"
    "|docs|dot|einsum_language|examples|fold_lengths|fuzz|gallery|guided|hostile_.*|layers"
    "|libraries|limits|long_traces|machines|mathml|mutants|namespaces|notebooks|numpy_named|nvrtc"
    "|package|peaks|plan_memory|planted|public_names|random|readme|reliability|scipy_names|source_.*"
    "|symbolic_work|threads|web.*|words_of_formulas"
)


def tests() -> list[str]:
    """The test files that meet faults."""
    found = sorted((ROOT / "tests").glob("test_*.py"))
    names = [path.name for path in found if not OUTSIDE.fullmatch(path.stem.removeprefix("test_"))]
    return [f"tests/{name}" for name in names]


#: Survivors that change nothing a test could see, by module and fault, and why.
REASONS: dict[tuple[str, str], str] = {
    ("tcalc/rules/facts.py", "depth - 1 -> depth"): "a search for facts goes on for longer",
    ("tcalc/graph/normal.py",
     "not isinstance(e, Einsum) or not isinstance(inner, Add) -> not isinstance(inner, Add)"):
        "only of an Einsum there is something inside",
}  # fmt: skip
