"""``python -m web.examples OUT``: run every example and write OUT/index.html."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import (
    bundle_adjustment,
    choice_models,
    matrix_factorisation,
    population_glm,
    random_effects,
)
from .page import write_page

EXAMPLES = (
    matrix_factorisation,
    population_glm,
    choice_models,
    bundle_adjustment,
    random_effects,
)


def run(folder: Path) -> Path:
    """Run all examples; the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    return write_page(folder, [(module, module.main(folder)) for module in EXAMPLES])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m web.examples", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the page and its figures go")
    print(run(parser.parse_args().folder))
