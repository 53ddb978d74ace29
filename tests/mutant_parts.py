"""Parts of the code in which faults are planted, the tests that touch each, and known survivors."""

from __future__ import annotations

from dataclasses import dataclass

from tests.documents import ROOT


def files(*patterns: str) -> tuple[str, ...]:
    """Paths from the repository's root, without files that only hold a docstring."""
    found = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    return tuple(str(path.relative_to(ROOT)) for path in found if path.name != "__init__.py")


def tests(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/test_{name}.py" for name in names)


@dataclass(frozen=True)
class Part:
    """Modules, and test files that touch them, in the order in which they are run.

    With `texts`, faults are also planted in text that is compiled.
    """

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    texts: bool = False


PARTS: dict[str, Part] = {
    "derivatives": Part(
        files("tcalc/accumulation/*.py", "tcalc/calculus/transforms.py",
              "tcalc/calculus/projection.py", "tcalc/ops/elementwise.py", "tcalc/ops/special.py",
              "tcalc/ops/bessel.py", "tcalc/ops/guard.py", "tcalc/ops/reductions.py",
              "tcalc/ops/ordering.py", "tcalc/ops/incomplete.py"),
        tests("operators", "operation_counts", "derivatives", "kinks", "special_functions",
              "directional", "properties", "stability", "rules", "guards", "choices",
              "degenerate", "bad_input", "numpy_names"),
    ),
    "matrix derivatives": Part(
        files("tcalc/ops/matrix/*.py"),
        tests("linalg", "operators", "matrix_functions", "svd", "cofactors", "factorisations",
              "scaled_norms", "low_rank", "packed", "linalg_errors", "degenerate",
              "special_functions", "linalg_compositions"),
    ),
    "normal form": Part(
        files("tcalc/graph/normal.py", "tcalc/graph/products.py", "tcalc/graph/sums.py",
              "tcalc/graph/inlining.py", "tcalc/graph/orientation.py", "tcalc/graph/canonical.py",
              "tcalc/graph/retracing.py", "tcalc/graph/bound_variables.py"),
        tests("normal_form", "operation_counts", "sums", "powers_of_one_base", "retracing",
              "paper", "derivatives", "expand", "constants", "spellings", "text_reads_back",
              "operators"),
    ),
    "simplification": Part(
        files("tcalc/rules/*.py"),
        tests("rules", "operation_counts", "stable_sums", "facts", "expand", "distances",
              "spellings", "stable_functions", "linalg", "domains", "matrix_spellings"),
    ),
    "index solving": Part(
        files("tcalc/integers/*.py", "tcalc/ops/affine_entries.py", "tcalc/ops/indicator.py",
              "tcalc/graph/extent_forms.py", "tcalc/languages/index/ranges.py",
              "tcalc/languages/index/iteration_space.py"),
        tests("affine", "extents", "index_conditions", "index_integers", "index_language",
              "indicators", "affine_examples", "gather", "index_errors", "index_printing"),
    ),
    "compression": Part(
        files("tcalc/compression/*.py", "tcalc/structured/*.py", "tcalc/structured/terms/*.py",
              "tcalc/structured/solvers/*.py"),
        tests("structured", "structured_blocks", "solvers", "solvers_several", "bands",
              "open_contractions", "gather_compressed", "low_rank", "sparse_patterns", "paper",
              "structured_hostile"),
    ),
    "plans": Part(
        files("tcalc/plan/products/*.py", "tcalc/plan/lowering/*.py", "tcalc/contraction/*.py"),
        tests("plan", "operation_counts", "gather", "correlations", "layouts", "merged_axes",
              "spellings", "wraps", "chains", "solvers", "fuzz"),
    ),
    "loops": Part(
        files("tcalc/loops/*.py"),
        tests("fold_sums", "operation_counts", "fold_rows", "fold_lengths", "fold_integers",
              "fold_reductions", "fold_until", "fold_checkpoints", "fold_arrays", "fold_forms",
              "folding", "fold", "comprehensions", "nests"),
    ),
    "kernels": Part(
        files("tcalc/backends/c/rows.py", "tcalc/backends/c/spelling.py",
              "tcalc/backends/c/powers.py", "tcalc/backends/c/moves.py",
              "tcalc/backends/c/loopnests.py", "tcalc/backends/c/source.py",
              "tcalc/backends/c/matrices.py", "tcalc/backends/c/tiles.py",
              "tcalc/plan/kinds/*.py", "tcalc/backends/numpy/kernels.py",
              "tcalc/backends/numpy/matrices.py", "tcalc/backends/numpy/strided.py",
              "tcalc/backends/numpy/gathers.py"),
        tests("kinds", "c", "plan", "c_forms", "c_objects", "correlations", "gather", "layouts",
              "backends", "large_numbers", "tiny_tiles"),
        texts=True,
    ),
}  # fmt: skip

#: Survivors that change nothing a test could see, by module and fault, and why.
REASONS: dict[tuple[str, str], str] = {}
