"""``tcalc gallery OUT``: one page of derivatives, each in every language, without scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from itertools import groupby
from pathlib import Path

from ..calculus.transforms import derivative
from ..graph.nodes import Expr, Var
from ..languages.mathml import to_mathml
from ..languages.matrix.parse import parse
from ..languages.registry import TEXT_LANGUAGES
from ..languages.source.print import to_code
from ..languages.source.registry import LANGUAGES
from ..support.errors import Error
from .declarations import declare
from .queries import GALLERY, Query

TITLE = "Derivatives, written out"
INTRODUCTION = """\
Functions of scalars, vectors and matrices, with the derivative that tcalc finds: as a formula, as
text that it reads again, and as programs that run without it."""

#: What orders are called.
ORDERS = {1: "derivative", 2: "second derivative", 3: "third derivative"}


def write_gallery(folder: Path) -> Path:
    """Write the page.

    Parameters
    ----------
    folder : Path
        Made where it does not exist.

    Returns
    -------
    Path
        The page, `index.html` in the folder, which needs no other file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.html"
    page.write_text(gallery_page(GALLERY), encoding="utf-8")
    return page


def gallery_page(queries: dict[str, tuple[Query, ...]]) -> str:
    """HTML of queries by subject; all of their text is escaped."""
    here = Path(__file__).parent
    style = "".join(
        (here / name).read_text(encoding="utf-8") for name in ("page.css", "gallery.css")
    )
    subjects = list(enumerate(queries))
    links = "".join(f'<li><a href="#s{k}">{escape(subject)}</a></li>' for k, subject in subjects)
    sections = "\n".join(
        f'<section id="s{k}">\n<h2>{escape(subject)}</h2>\n'
        + "\n".join(_shown(query) for query in queries[subject])
        + "\n</section>"
        for k, subject in subjects
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{TITLE}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{TITLE}</h1>\n<p>{escape(INTRODUCTION)}</p>\n<nav><ol>{links}</ol></nav>\n"
        f"{sections}\n</main>\n</body>\n</html>\n"
    )


def derived(query: Query) -> tuple[Expr, dict[str, Var]]:
    """The derivative that a query asks for, and its variables by name."""
    variables = declare(query.declared.split())
    found: Expr = parse(query.text, **variables)
    for name, group in groupby(query.by.split()):
        found = derivative(found, name, len(list(group)))
    return found, variables


def _declared(v: Var) -> str:
    """A variable, its extents and properties in words."""
    extents = " × ".join(map(str, v.shape)) or "scalar"
    return " ".join([f"{v.name}:", *(p.replace("_", " ") for p in sorted(v.properties)), extents])


def _shown(query: Query) -> str:
    """A query, its derivative set as a formula, and in every language behind a name to open."""
    e, variables = derived(query)
    names = query.by.split()
    given = ", ".join(map(_declared, variables.values()))
    by = " and ".join(dict.fromkeys(names))
    tabs = "\n".join(
        f'<details name="{escape(query.name, quote=True)}"{" open" if name == "text" else ""}>'
        f"<summary>{escape(name)}</summary><pre><code>{escape(text)}</code></pre></details>"
        for name, text in _forms(e)
    )
    return (
        f"<article>\n<h3>{escape(query.name[:1].upper() + query.name[1:])}</h3>\n"
        f'<p class="asked">The {ORDERS[len(names)]} by {escape(by)} of '
        f"<code>{escape(query.text)}</code><br>{escape(given)}</p>\n"
        f'<div class="set">{_differential(names)}{to_mathml(e)}</div>\n'
        f'<div class="forms">\n{tabs}\n</div>\n</article>'
    )


def _forms(e: Expr) -> Iterator[tuple[str, str]]:
    """Pairs of a language and the text in it; what a language has no words for, it says."""
    for language in TEXT_LANGUAGES.values():
        if language.write:
            yield language.form, _said(language.write, e)
    for name in LANGUAGES:
        yield name, _said(to_code, e, name)


def _said(write: Callable[..., str], *arguments: object) -> str:
    try:
        return write(*arguments)
    except Error as error:
        return str(error)


def _differential(names: list[str]) -> str:
    """MathML of the operator: ∂²f / ∂x ∂y =."""
    order = len(names)
    above = f"<msup><mo>∂</mo><mn>{order}</mn></msup>" if order > 1 else "<mo>∂</mo>"
    below = ""
    for name, group in groupby(names):
        power = len(list(group))
        letter = f"<mi>{escape(name)}</mi>"
        below += "<mo>∂</mo>"
        below += letter if power == 1 else f"<msup>{letter}<mn>{power}</mn></msup>"
    return (
        f'<math display="inline" displaystyle="true"><mfrac><mrow>{above}<mi>f</mi></mrow>'
        f"<mrow>{below}</mrow></mfrac><mo>=</mo></math>"
    )
