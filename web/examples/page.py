"""Plain HTML around what the examples found: no script, nothing fetched from elsewhere."""

from __future__ import annotations

import ast
import re
from html import escape
from importlib.resources import files
from pathlib import Path
from types import ModuleType

from .report import Figure, Found, Table

TITLE = "The Hessian you can solve with"
INTRODUCTION = """\
A Hessian of a million unknowns has a million million entries, and a Newton step with it needs a
factor of them all, unless most entries are zero or repeated for a reason that can be read off the
formula. tcalc reads it: the formula of the second derivative says which indices are only compared
(a delta) and which carry numbers (a core). The cores are computed, and multiplied, solved, inverted
with; the dense tensor never exists. Each model below is one script of the folder web/examples,
shown in full under its results; `python -m web.examples OUT` makes this page."""


def write_page(folder: Path, found: list[tuple[ModuleType, Found]]) -> Path:
    """Write index.html and style.css into the folder; the path of the page."""
    links = "".join(
        f'<li><a href="#{name(module)}">{escape(title(module))}</a></li>' for module, _ in found
    )
    body = "\n".join(section(module, result) for module, result in found)
    page = folder / "index.html"
    page.write_text(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{TITLE}</title>\n<link rel="stylesheet" href="style.css">\n'
        "</head>\n<body>\n<main>\n"
        f"<h1>{TITLE}</h1>\n{paragraphs(INTRODUCTION)}\n<nav><ol>{links}</ol></nav>\n"
        f"{body}\n</main>\n</body>\n</html>\n",
        encoding="utf-8",
    )
    styles = (files("tcalc") / "app" / "page.css", Path(__file__).parent / "style.css")
    style = "".join(part.read_text(encoding="utf-8") for part in styles)
    (folder / "style.css").write_text(style, encoding="utf-8")
    return page


def name(module: ModuleType) -> str:
    return module.__name__.rsplit(".", 1)[-1]


def title(module: ModuleType) -> str:
    return (module.__doc__ or "").strip().split("\n", 1)[0].rstrip(".")


def text(words: str) -> str:
    """Escaped, with `this` as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(words))


def paragraphs(words: str) -> str:
    return "\n".join(f"<p>{text(part.strip())}</p>" for part in words.split("\n\n") if part.strip())


def section(module: ModuleType, found: Found) -> str:
    prose = (module.__doc__ or "").strip().partition("\n")[2]
    parts = [
        f'<section id="{name(module)}">',
        f"<h2>{escape(title(module))}</h2>",
        paragraphs(prose),
    ]
    for heading, formula in found.formulas:
        parts.append(f"<figure><figcaption>{text(heading)}</figcaption>")
        parts.append(f'<pre class="formula">{escape(formula)}</pre></figure>')
    if found.notes:
        parts.append("<ul>" + "".join(f"<li>{text(note)}</li>" for note in found.notes) + "</ul>")
    parts += [drawing(figure) for figure in found.figures]
    parts += [grid(table) for table in found.tables]
    parts += [source(module), "</section>"]
    return "\n".join(parts)


def drawing(figure: Figure) -> str:
    caption = text(figure.caption)
    plain = escape(figure.caption.replace("`", ""), quote=True)
    return (
        f'<figure><img src="{escape(figure.file, quote=True)}" alt="{plain}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def grid(table: Table) -> str:
    head = "".join(f'<th scope="col">{text(cell)}</th>' for cell in table.header)
    rows = "\n".join(
        f'<tr><th scope="row">{text(row[0])}</th>'
        + "".join(f"<td>{text(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in table.rows
    )
    return (
        f'<div class="wide"><table><caption>{text(table.caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"
    )


def source(module: ModuleType) -> str:
    """The script without its docstring, which is the text above it."""
    path = Path(module.__file__ or "")
    code = path.read_text(encoding="utf-8")
    docstring = ast.parse(code).body[0]
    after = "".join(code.splitlines(keepends=True)[docstring.end_lineno or 0 :])
    return (
        f"<details><summary>The script: web/examples/{escape(path.name)}</summary>"
        f"<pre><code>{escape(after.strip())}</code></pre></details>"
    )
