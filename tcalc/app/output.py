"""Forms of output: their names, their text, and the files that they go to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..graph import trees
from ..languages.mathml import to_mathml
from ..languages.registry import TEXT_LANGUAGES
from ..languages.source.c_module import header_of
from ..languages.source.print import to_code
from ..languages.source.registry import LANGUAGES
from .dot import to_dot

#: Forms of which every part of a derivative has its own text.
OUTPUT_FORMS = {row.form: row.write for row in TEXT_LANGUAGES.values() if row.write}
#: Forms in which all parts are one document.
DOCUMENTS: dict[str, Callable[..., str]] = {"mathml": to_mathml, "dot": to_dot}
#: Forms that have names for what is repeated.
NAMING = {row.form for row in TEXT_LANGUAGES.values() if row.names}
#: What names of files end with; other languages of source are Python.
ENDINGS = {
    "text": ".txt", "latex": ".tex", "mathml": ".mml", "dot": ".dot", "einsum": ".einsum",
    "index": ".index", "c": ".c", "cuda": ".cu", "julia": ".jl", "matlab": ".m",
}  # fmt: skip


def forms() -> list[str]:
    """The names of all forms."""
    return sorted({*OUTPUT_FORMS, *DOCUMENTS, *LANGUAGES})


def shown(result: Any, form: str, name: str = "f", where: bool = False) -> str:
    """A derivative, or a nest of them, in a form; source has a function of that name.

    With `where` formulas name what is repeated in them.
    """
    names = {"where": where} if form in NAMING else {}
    if form in LANGUAGES:
        return to_code(result, form, name)
    if form in DOCUMENTS:
        return DOCUMENTS[form](result, **names)
    return listed(result, [OUTPUT_FORMS[form](block, **names) for block in trees.leaves(result)])


def listed(result: Any, texts: Sequence[str]) -> str:
    """Blocks of a derivative, each with its variables if there are several."""
    return texts[0] if len(texts) == 1 else trees.listed(result, texts)


def files(result: Any, chosen: Sequence[str], out: str, where: bool = False) -> dict[Path, str]:
    """What is written where.

    Parameters
    ----------
    result : expression or nest of expressions
    chosen : sequence of str
        Forms.
    out : str
        For one form the file; for several a name, to which each form adds its ending, or a folder,
        in which that name is ``f``. Functions of source are called as the file, where that is a
        name of the language, else ``f``. C has its header beside it.
    where : bool
        Do formulas name what is repeated in them?
    """
    path = Path(out)
    if path.is_dir() or out.endswith(("/", "\\")):
        path = path / "f"
    endings = {form: ENDINGS.get(form, ".py") for form in chosen}
    often = Counter(endings.values())
    found = {}
    for form, ending in endings.items():
        stem = path.name if often[ending] == 1 else f"{path.name}_{form}"
        one = len(endings) == 1 and path.suffix
        target = path if one else path.with_name(stem + ending)
        text = _named(result, form, target.stem, where)
        found[target] = text if text.endswith("\n") else text + "\n"
        if form == "c":
            found[target.with_suffix(".h")] = header_of(text)
    return found


def _named(result: Any, form: str, name: str, where: bool) -> str:
    """The text, its function called as its file where it can be."""
    try:
        return shown(result, form, name, where)
    except ValueError:
        return shown(result, form, where=where)


def write(texts: dict[Path, str]) -> None:
    """Write files, in folders that are made."""
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
