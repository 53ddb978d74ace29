"""What the JSON interface takes and gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from .queries import MODES, OUTPUTS, PROPERTIES, READERS
from .settings import SETTINGS

_Strict = ConfigDict(strict=True, extra="forbid")

if TYPE_CHECKING:
    from typing import TypeAlias

    Language: TypeAlias = str
    Output: TypeAlias = str
    Mode: TypeAlias = str
    Property: TypeAlias = str
else:
    Language, Output = Literal[tuple(READERS)], Literal[OUTPUTS]
    Mode, Property = Literal[MODES], Literal[PROPERTIES]

Name = Annotated[str, StringConstraints(pattern=r"^[^\W\d_]\w{0,63}$")]
Extent = (
    Annotated[int, Field(ge=0, le=10**9)]
    | Annotated[str, StringConstraints(min_length=1, max_length=64)]
)


Shape = Annotated[list[Extent], Field(max_length=8)]


class Variable(BaseModel):
    """A variable: its axes, as numbers or names of dimensions, and what is known of it."""

    model_config = _Strict
    shape: Shape = Field([], description='As `["m", "n"]` or `[3, "n-1"]`; none: a number.')
    properties: Annotated[list[Property], Field(max_length=6)] = []


def _whole(given: object) -> object:
    """A variable of which the shape alone may be given."""
    if isinstance(given, list):
        return {"shape": given}
    if not isinstance(given, dict | Variable):
        message = (
            'a variable is its shape, as ["m", "n"], or {"shape": ["m", "n"], "properties": []}'
        )
        raise PydanticCustomError("variable", message)
    return given


Declared = Annotated[Variable, BeforeValidator(_whole, json_schema_input_type=Variable | Shape)]


class Query(BaseModel):
    """An expression, by what it is differentiated, and what is to be told of the result."""

    model_config = _Strict
    expression: Annotated[str, StringConstraints(min_length=1, max_length=SETTINGS.characters)] = (
        Field(description="Text in the language.", examples=["x'*A*x"])
    )
    language: Language = "matrix"
    variables: Annotated[dict[Name, Declared], Field(max_length=SETTINGS.variables)] = Field(
        {},
        description=(
            'By name, each as `{"shape": ["m", "n"]}` or by its shape alone, `["m", "n"]`; those'
            " that the language declares by itself may be missing."
        ),
    )
    wrt: Annotated[list[Name], Field(max_length=SETTINGS.variables)] = Field(
        [], description="Variables to differentiate by; none: the expression itself."
    )
    order: Annotated[int, Field(ge=1, le=SETTINGS.order)] = 1
    mode: Mode = Field("auto", description="The order of accumulation.")
    compress: bool = Field(False, description="Tell cores and unit tensors.")
    outputs: Annotated[list[Output], Field(max_length=len(OUTPUTS))] = Field(
        ["text", "latex"], description="Formulas, the graph, and code in several languages."
    )
    where: bool = Field(False, description="Name what stands several times in a formula.")
    sizes: Annotated[
        dict[str, Annotated[int, Field(ge=0, le=10**9)]], Field(max_length=SETTINGS.variables)
    ] = Field({}, description="Extents for which costs are predicted; nothing is allocated.")
    guess: bool = Field(False, description="Declare what is not declared as its name suggests.")
    check: bool = Field(False, description="Compare with numerical differentiation.")


class Cost(BaseModel):
    """Predicted costs of the result in one mode."""

    mode: str
    steps: int = Field(description="Of the plan.")
    flops: float = Field(description="Operations on numbers.")
    peak_bytes: int = Field(description="The most memory that is held at once.")


class Check(BaseModel):
    """A comparison with numerical differentiation on random data; `agrees` is null where it says
    nothing, for the reason given."""

    agrees: bool | None
    error: float | None
    tolerance: float | None = None
    sizes: dict[str, int] = {}
    reason: str | None = None


class Answer(BaseModel):
    """A derivative."""

    shape: list[int | str] | None = Field(description="Null where there are several, by several.")
    layout: str = Field(description="How its axes are ordered, in words.")
    variables: dict[str, Any] = Field(description="Their shapes and properties, guessed or given.")
    outputs: dict[str, str] = Field(description="By name, as asked for.")
    modes: list[Cost] = Field(description="The predicted costs of every mode.")
    sizes: dict[str, int] = Field(description="The extents for which they are predicted.")
    check: Check | None = Field(description="Where it was asked for.")
    compressed: str | None = Field(description="Cores and unit tensors, where they were asked for.")


class Problem(BaseModel):
    """What was wrong, where in the text, and what was expected there."""

    kind: str
    message: str
    line: int | None = Field(None, description="Of the expression, or of what is no JSON, from 1.")
    column: int | None = Field(None, description="From 1.")
    expected: str | None = None


class Failure(BaseModel):
    error: Problem
