"""The page: a form whose address says everything, and the answer under it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from pydantic import ValidationError

from .examples import EXAMPLES
from .problems import choice
from .queries import CODE, FORMULAS, MODES, PROPERTIES, READERS
from .schema import Query
from .settings import SETTINGS

FOLDER = Path(__file__).parent
#: Combinations of properties that variables have.
PROPERTY_CHOICES = ("", *PROPERTIES, "symmetric nonnegative", "diagonal nonnegative")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_TICKED = re.compile(r"`([^`]*)`")
_STYLE = re.compile(r' style="[^"]*"')
_ENVIRONMENT = Environment(
    loader=FileSystemLoader(FOLDER / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
#: Of numbers in the form; the description of queries bounds them further.
_DIGITS = 12
#: In place of a guess where a shape was declared.
_DECLARED = "-"
TITLES = {
    "text": "Text", "latex": "LaTeX", "mathml": "MathML", "einsum": "Einsum", "index": "Index",
    "dot": "DOT", "svg": "Graph", "numpy": "NumPy", "cupy": "CuPy", "jax": "JAX",
    "torch": "PyTorch",
    "julia": "Julia", "matlab": "MATLAB", "c": "C", "cuda": "CUDA",
}  # fmt: skip


#: What stands above an error, by its kind; the same for all others.
HEADINGS = {
    "ParseError": "This cannot be read", "ShapeError": "These shapes do not fit",
    "LimitError": "Too much for one query", "TimeLimit": "Too much for one query",
    "TooManyQueries": "Too many queries", "Busy": "Too many people ask", "Restarted": "Try again",
    "Mistake": "Our mistake",
}  # fmt: skip
HEADING = "This cannot be derived"
#: What is not the fault of what was typed.
_BLAMELESS = ("TimeLimit", "TooManyQueries", "Busy", "Restarted", "Mistake")
#: What a field of the form may be, by the kind of error that pydantic finds.
_MUST = {
    "string_pattern_mismatch": "{input!r} is no name: letters and digits, a letter first",
    "string_too_short": "there is no expression",
    "string_too_long": "{field} has more than {max_length:,} characters",
    "too_long": "{field} are more than {max_length:,}",
    "less_than_equal": "{field} is at most {le:,}",
    "greater_than_equal": "{field} is at least {ge:,}",
    "literal_error": "{choice}",
}
_FIELDS = {"wrt": "variables to derive by", "order": "the order"}


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
        ][: SETTINGS.variables + 1]  # one too many is told
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
        given = {
            "expression": self.expression,
            "language": self.language,
            "variables": {
                row.name: {"shape": _extents(row.shape), "properties": row.properties.split()}
                for row in self.rows
                if row.edited
            },
            "wrt": _parts(self.wrt),
            "order": _number(self.order, "the order"),
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
            raise ValueError(_told(error)) from None

    def with_variables(self, variables: Mapping[str, Mapping[str, Any]]) -> list[Row]:
        """Rows of the form for the variables that an answer has found."""
        edited = {row.name: row for row in self.rows if row.edited}
        found = []
        for name, variable in variables.items():
            shape = ", ".join(str(extent) for extent in variable["shape"])
            declared = edited.pop(name) if name in edited else None
            found.append(declared or Row(name, shape, "", shape))
        return (found + list(edited.values()))[: SETTINGS.variables]


def _told(error: ValidationError) -> str:
    """The first thing that is wrong in a form."""
    first = error.errors()[0]
    field = str(first["loc"][0])
    words = {"field": _FIELDS.get(field, f"the {field}"), "input": str(first["input"])[:64]}
    words["choice"] = choice(first) if first["type"] == "literal_error" else ""
    return _MUST.get(first["type"], "{field}: {msg}").format(
        msg=first["msg"], **first.get("ctx", {}), **words
    )


def _parts(text: str) -> list[str]:
    return [part for part in re.split(r"[\s,;]+", text) if part]


def _extents(text: str) -> list[int | str]:
    parts = [part.strip() for part in text.strip("() ").split(",")]
    return [_number(part, "an extent") if part.isdecimal() else part for part in parts if part]


def _size(part: str) -> tuple[str, int]:
    name, _, value = part.partition("=")
    if not value.isdecimal():
        raise ValueError(f"sizes are written n=100, not {part[:64]!r}")
    return name, _number(value, f"the size {name}")


def _number(text: str, what: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{what} is a number, not {text[:64]!r}")
    if len(text) > _DIGITS:
        raise ValueError(f"{what} has more than {_DIGITS} digits")
    return int(text)


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


def interface(description: Mapping[str, Any], address: str) -> str:
    """The documentation of the JSON interface at an address, from its OpenAPI description."""
    template = _ENVIRONMENT.get_template("interface.html")
    return template.render(api=description, address=address, kind=_kind)


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


def worded(text: str) -> Markup:
    """Text in which names stand between backticks."""
    return Markup(_TICKED.sub(r"<code>\1</code>", str(escape(text))))


def heading(error: Mapping[str, Any]) -> str:
    """What stands above an error."""
    return HEADINGS.get(error["kind"], HEADING)


def blamed(error: Mapping[str, Any] | None) -> bool:
    """Is what was typed at fault?"""
    return error is not None and error["kind"] not in _BLAMELESS


def counted(number: float) -> str:
    """A count as a person reads it: 1,040 or 1.04 × 10⁶."""
    if number < 1e5:
        return f"{number:,.0f}"
    digits, _, power = f"{number:.2e}".partition("e")
    return f"{digits} × 10{str(int(power)).translate(_RAISED)}"


_ENVIRONMENT.globals |= {
    "marked": marked, "framed": framed, "worded": worded, "heading": heading,
    "blamed": blamed, "counted": counted,
}  # fmt: skip
