"""Forms of output: their names, their text, and the files that they go to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..graph import trees
from ..languages.registry import TEXT_LANGUAGES
from ..languages.source.c_header import MARK, header_of
from ..languages.source.print import to_code
from ..languages.source.registry import LANGUAGES
from ..support.errors import Error
from .dot import to_dot

#: Forms that are no source, by what writes them: an expression, or a nest in the form's own way.
WRITERS: dict[str, Callable[..., str]] = {
    **{row.form: row.write for row in TEXT_LANGUAGES.values() if row.write},
    "dot": to_dot,
}
#: Forms that have names for what is repeated.
NAMING = {row.form for row in TEXT_LANGUAGES.values() if row.names}
#: What names of files end with; other languages of source are Python.
ENDINGS = {
    "text": ".txt", "latex": ".tex", "mathml": ".mml", "dot": ".dot", "einsum": ".einsum",
    "index": ".index", "c": ".c", "cuda": ".cu", "julia": ".jl", "matlab": ".m",
}  # fmt: skip
#: What a path ends with that names a folder.
SEPARATORS = ("/", "\\")


def forms() -> list[str]:
    """The names of all forms."""
    return sorted({*WRITERS, *LANGUAGES})


def shown(result: Any, form: str, name: str = "f", where: bool = False) -> str:
    """A derivative, or a nest of them, in a form; source has a function of that name.

    With `where` formulas name what is repeated in them.
    """
    if form in LANGUAGES:
        return to_code(result, form, name)
    return WRITERS[form](result, **({"where": where} if form in NAMING else {}))


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

    Raises
    ------
    Error
        Where the header would overwrite a file that tcalc did not write.
    """
    path = Path(out)
    if path.is_dir() or out.endswith(SEPARATORS):
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
            found[beside(target, ".h")] = header_of(text)
    return found


def _named(result: Any, form: str, name: str, where: bool) -> str:
    """The text, its function called as its file where it can be."""
    try:
        return shown(result, form, name, where)
    except ValueError:
        return shown(result, form, where=where)


def beside(path: Path, ending: str) -> Path:
    """A file of C beside the one that is asked for.

    Raises
    ------
    Error
        Where there is one that tcalc did not write, which nobody said may be lost.
    """
    found = path.with_suffix(ending)
    if found.exists() and not found.read_bytes().startswith(MARK.encode()):
        raise Error(
            f"{found} would be overwritten, and tcalc did not write it;"
            " move it away, or choose another name for the output"
        )
    return found


def folder_for(path: Path) -> None:
    """See that there is a folder for a file.

    Raises
    ------
    Error
        Where there is none: a mistyped path should not become a tree of folders.
    """
    if not path.parent.is_dir():
        raise Error(f"there is no folder {path.parent}, where {path.name} would be written")


def make_folder(folder: Path) -> None:
    """Make a folder that an option names, but none above it."""
    folder_for(folder)
    folder.mkdir(exist_ok=True)


def write(texts: dict[Path, str], out: str) -> None:
    """Write files that `files` has named by `out`; a folder that ends with a slash is made.

    Raises
    ------
    Error
        Where a folder is missing.
    """
    if out.endswith(SEPARATORS):
        make_folder(Path(out))
    for path in texts:
        folder_for(path)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
