"""The page: a form whose address says everything, and the answer under it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pydantic import ValidationError

from .examples import EXAMPLES
from .queries import CODE, FORMULAS, MODES, PROPERTIES, READERS
from .schema import Query
from .settings import SETTINGS

FOLDER = Path(__file__).parent
#: Combinations of properties that variables have.
PROPERTY_CHOICES = ("", *PROPERTIES, "symmetric nonnegative", "diagonal nonnegative")
_STYLE = re.compile(r' style="[^"]*"')
_ENVIRONMENT = Environment(
    loader=FileSystemLoader(FOLDER / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
#: In place of a guess where a shape was declared.
_DECLARED = "-"
TITLES = {
    "text": "Text", "latex": "LaTeX", "mathml": "MathML", "einsum": "Einsum", "index": "Index",
    "dot": "DOT", "svg": "Graph", "numpy": "NumPy", "cupy": "CuPy", "jax": "JAX",
    "torch": "PyTorch",
    "julia": "Julia", "matlab": "MATLAB", "c": "C", "cuda": "CUDA",
}  # fmt: skip


@dataclass
class Row:
    """A variable in the form; `guess` is the shape that was guessed, to tell what was edited."""

    name: str
    shape: str
    properties: str = ""
    guess: str | None = None

    @property
    def edited(self) -> bool:
        """Is it anything but what was guessed?"""
        return self.guess is None or self.shape != self.guess or bool(self.properties)


@dataclass
class Form:
    """What stands in the form, as typed."""

    expression: str = ""
    language: str = "matrix"
    wrt: str = ""
    order: str = "1"
    mode: str = "auto"
    compress: bool = False
    where: bool = False
    check: bool = False
    sizes: str = ""
    rows: list[Row] = field(default_factory=list)

    @classmethod
    def read(cls, given: Sequence[tuple[str, str]]) -> Form:
        """From the parameters of an address; what is unknown is left."""
        single = dict(given)
        columns: dict[str, list[str]] = {key: [] for key in ("vn", "vs", "vp", "vg")}
        for key, value in given:
            if key in columns:
                columns[key].append(value)
        blank = len(columns["vn"])
        padded = [
            values + [""] * (blank - len(values)) for values in (columns["vs"], columns["vp"])
        ]
        guesses = [g if g != _DECLARED else None for g in columns["vg"]] + [None] * blank
        rows = [
            Row(name.strip(), shape.strip(), properties, guess)
            for name, shape, properties, guess in zip(
                columns["vn"], *padded, guesses[:blank], strict=True
            )
            if name.strip()
        ]
        return cls(
            expression=single.get("e", ""),
            language=single.get("l", "matrix"),
            wrt=single.get("d", ""),
            order=single.get("o", "1"),
            mode=single.get("m", "auto"),
            compress="c" in single,
            where="w" in single,
            check="k" in single,
            sizes=single.get("s", ""),
            rows=rows,
        )

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The address of this form: nothing that is as it would be anyway."""
        found = [("e", self.expression)]
        for key, value, usual in (
            ("l", self.language, "matrix"), ("d", self.wrt, ""), ("o", self.order, "1"),
            ("m", self.mode, "auto"), ("s", self.sizes, ""),
        ):  # fmt: skip
            found += [(key, value)] if value != usual else []
        flags = (("c", self.compress), ("w", self.where), ("k", self.check))
        found += [(key, "1") for key, on in flags if on]
        for row in self.rows:
            if row.edited:
                found += [("vn", row.name), ("vs", row.shape), ("vp", row.properties)]
        return found

    @property
    def link(self) -> str:
        return urlencode(self.parameters)

    def query(self, outputs: Sequence[str]) -> Query:
        """What is asked.

        Raises
        ------
        ValueError
            Telling what of the form cannot be used.
        """
        sizes = dict(_size(part) for part in _parts(self.sizes))
        if not self.order.isdecimal():
            raise ValueError(f"the order is a number from 1 to {SETTINGS.order}")
        given = {
            "expression": self.expression,
            "language": self.language,
            "variables": {
                row.name: {"shape": _extents(row.shape), "properties": row.properties.split()}
                for row in self.rows
                if row.edited
            },
            "wrt": _parts(self.wrt),
            "order": int(self.order),
            "mode": self.mode,
            "compress": self.compress,
            "outputs": list(outputs),
            "where": self.where,
            "sizes": sizes,
            "check": self.check,
            "guess": True,
        }
        try:
            return Query.model_validate(given)
        except ValidationError as error:
            first = error.errors()[0]
            where = " ".join(str(part) for part in first["loc"])
            raise ValueError(f"{where}: {first['msg']}") from None

    def with_variables(self, variables: Mapping[str, Mapping[str, Any]]) -> list[Row]:
        """Rows of the form for the variables that an answer has found."""
        edited = {row.name: row for row in self.rows if row.edited}
        found = []
        for name, variable in variables.items():
            shape = ", ".join(str(extent) for extent in variable["shape"])
            declared = edited.pop(name) if name in edited else None
            found.append(declared or Row(name, shape, "", shape))
        return found + list(edited.values())


def _parts(text: str) -> list[str]:
    return [part for part in re.split(r"[\s,;]+", text) if part]


def _extents(text: str) -> list[int | str]:
    parts = [part.strip() for part in text.strip("() ").split(",")]
    return [int(part) if part.isdecimal() else part for part in parts if part]


def _size(part: str) -> tuple[str, int]:
    name, _, value = part.partition("=")
    if not value.isdecimal():
        raise ValueError(f"sizes are written n=100, not {part!r}")
    return name, int(value)


def page(form: Form, **found: Any) -> str:
    """The page with a form and what was found.

    Parameters
    ----------
    form : Form
    **found
        ``answer``, the body of an answer, or ``error``, that of an error.
    """
    context: dict[str, Any] = {
        "form": form, "answer": None, "error": None, "titles": TITLES, "formulas": FORMULAS,
        "code": CODE, "languages": list(READERS), "modes": MODES, "choices": PROPERTY_CHOICES,
        "examples": EXAMPLES, "declared": _DECLARED, "orders": range(1, SETTINGS.order + 1),
        "limit": SETTINGS.characters,
    }  # fmt: skip
    return _ENVIRONMENT.get_template("page.html").render(context | found)


def embedded(form: Form, **found: Any) -> str:
    """The formula alone, to stand in a frame of another page."""
    context = {"form": form, "answer": None, "error": None}
    return _ENVIRONMENT.get_template("embed.html").render(context | found)


def interface(description: Mapping[str, Any]) -> str:
    """The documentation of the JSON interface, from its OpenAPI description."""
    return _ENVIRONMENT.get_template("interface.html").render(api=description, kind=_kind)


def _kind(schema: Mapping[str, Any]) -> str:
    """The type of a value in an OpenAPI description, in words."""
    if "enum" in schema:
        return ", ".join(schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}"
    return str(schema.get("type", "any"))


def marked(expression: str, error: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """The line of an error cut in three: before its place, the place, and the rest."""
    if not error.get("line"):
        return None
    lines = expression.split("\n")
    line = lines[min(error["line"], len(lines)) - 1]
    at = max(error.get("column") or 1, 1) - 1
    return line[:at], line[at : at + 1] or " ", line[at + 1 :]


def framed(mathml: str) -> Markup:
    """MathML without styles of its own, which the page forbids; its style sheet has them."""
    return Markup(_STYLE.sub("", mathml))


_ENVIRONMENT.globals |= {"marked": marked, "framed": framed}
