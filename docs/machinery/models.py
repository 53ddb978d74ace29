"""Pages of the models in `web/examples`, fitted at reduced sizes: words, figures, the script."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from web.examples import (
    bundle_adjustment,
    choice_models,
    matrix_factorisation,
    population_glm,
    random_effects,
)
from web.examples.report import Found, Table

ROOT = Path(__file__).resolve().parent.parent.parent

#: Arguments at which a model takes a second or two; `python -m web.examples` has the full ones.
SIZES: dict[ModuleType, dict[str, Any]] = {
    matrix_factorisation: {"images": 200, "ranks": (3, 5), "sweeps": 40},
    population_glm: {"counts": (50, 100, 200), "compared": 5},
    choice_models: {},
    bundle_adjustment: {"scenes": ((5, 20, 3), (8, 60, 4))},
    random_effects: {"count": 9},
}


def write_models(source: Path) -> None:
    """Write the folder `models` of the pages' folder, unless it is there from an earlier build."""
    folder = source / "models"
    if (folder / "index.md").exists():
        return
    folder.mkdir(exist_ok=True)
    names = []
    for module, sizes in SIZES.items():
        names.append(module.__name__.rpartition(".")[2])
        text = page(module, module.main(folder, **sizes))
        (folder / f"{names[-1]}.md").write_text(text, encoding="utf-8")
    listed = "\n".join(names)
    (folder / "index.md").write_text(
        "# Models with Hessians to solve with\n\nReduced sizes; `python -m web.examples OUT` runs "
        f"the full ones.\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n",
        encoding="utf-8",
    )


def page(module: ModuleType, found: Found) -> str:
    title, _, prose = (module.__doc__ or "").strip().partition("\n")
    parts = [f"# {title.rstrip('.')}", prose.strip()]
    for heading, formula in found.formulas:
        parts.append(f"{heading[0].upper()}{heading[1:]}:\n\n```text\n{formula}\n```")
    parts.append("\n".join(f"* {note}" for note in found.notes))
    for figure in found.figures:
        words = figure.caption.replace("`", "")
        parts.append(f":::{{figure}} {figure.file}\n:alt: {words}\n\n{figure.caption}\n:::")
    parts += [table(t) for t in found.tables]
    script = Path(module.__file__ or "").relative_to(ROOT).as_posix()
    parts.append(f"## The script\n\n```{{literalinclude}} ../../{script}\n:language: python\n```")
    return "\n\n".join(part for part in parts if part) + "\n"


def table(t: Table) -> str:
    rows = [t.header, ["---"] * len(t.header), *t.rows]
    return f"{t.caption}\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows)
