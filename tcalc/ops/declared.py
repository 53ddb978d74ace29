"""Elementwise functions that users declare: one row each, like those of the library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from keyword import iskeyword
from string import Formatter
from types import EllipsisType
from typing import Any

import numpy as np

from ..graph.applications import apply
from ..graph.arraylike import surface
from ..graph.nodes import Expr
from ..graph.operators import TABLE, Kernels, Meaning, Op, Partial
from ..graph.spelling import Spelling
from ..support.errors import ShapeError, UnsupportedError
from .arithmetic import as_expr, broadcast
from .elementwise_row import Function

#: Derivatives by each operand, or by the one that there is.
Slopes = Callable[..., Any] | Sequence[Callable[..., Any] | None]
#: Functions by name, which text may call too.
DECLARED: dict[str, Function] = {}


def elementwise(
    name: str,
    f: Callable[..., Any],
    derivative: Slopes | EllipsisType | None = ...,
    *,
    latex: str = "",
    code: Mapping[str, str] | None = None,
) -> Function:
    """Declare an elementwise function: it is used, differentiated and read like the library's own.

    Parameters
    ----------
    name : str
        An identifier, by which text calls the function too: of none of the library's functions. A
        name that was declared before stands for the new function from then on.
    f : callable
        The function of arrays of one shape, to an array of that shape.
    derivative : callable, or sequence of callables, optional
        The derivative by each operand, as a function of expressions: of all operands, or of these
        and the function's value. It may call the declared function, so that all orders follow. One
        callable declares a function of one operand. None in a sequence, or in its place: the
        derivative by that operand is zero wherever it exists. Without it functions of one operand
        have values and no derivative, which is an UnsupportedError.
    latex : str, optional
        LaTeX with operands as ``{0}``, ``{1}``, other braces doubled; else the name in roman type.
    code : mapping, optional
        By the name of a language of `to_code`, the text that computes it there, with operands as
        in `latex`; that of ``"c"`` serves ``"cuda"`` too. Without it source that needs the function
        is refused.

    Returns
    -------
    callable
        The function, of expressions and arrays, with NumPy's broadcasting.

    Raises
    ------
    ValueError
        For a name that is taken or is no identifier, and for text with other fields than those of
        the operands. At evaluation ShapeError where `f` gives another shape than it was given.

    Examples
    --------
    >>> import numpy as np
    >>> import tcalc as tc
    >>> sinc = tc.elementwise(
    ...     "sinc1", lambda x: np.sinc(x / np.pi), lambda x, value: (tc.cos(x) - value) / x,
    ...     code={"numpy": "np.sinc({0} / np.pi)"},
    ... )
    >>> x = tc.var("x", "n")
    >>> print(tc.grad(tc.sum(sinc(x)), x))
    (cos(x) - sinc1(x))./x
    """
    _check_name(name)
    if derivative is ...:
        derivative = _without_derivative(name)
    given: Sequence[Any] = derivative if isinstance(derivative, Sequence) else (derivative,)
    if not given or not all(d is None or callable(d) for d in given):
        raise TypeError(
            f"the derivative of {name} is a function, or a sequence with one an operand"
        )
    for what, text in {"latex": latex, **(code or {})}.items():
        _check_fields(name, what, text, len(given))
    for d in given:
        _check_operands(name, d, len(given))
    partials = [None if d is None else _partial(name, d, len(given)) for d in given]
    earlier = sum(row.spelling.printed == name for row in TABLE.values())
    if earlier and len(TABLE[name].core) != len(given):
        raise ValueError(f"{name} was declared with {len(TABLE[name].core)} operands")
    fields = ", ".join([f"{{{k}}}" for k in range(len(given))])
    shown = name.replace("_", r"\_")
    row = Op(
        f"{name}#{earlier + 1}" if earlier else name, (0,) * len(given),
        Meaning(tuple(partials)),
        Kernels(_kernel(name, f), host=True, shares=True, flops=10),
        Spelling(
            latex or rf"\operatorname{{{{{shown}}}}}({fields})", printed=name,
            code={"cuda": code["c"], **code} if code and "c" in code else dict(code or {}),
        ),
    )  # fmt: skip

    def function(*operands: object) -> Expr:
        if len(operands) != len(given):
            raise TypeError(f"{name} takes {len(given)} operands, not {len(operands)}")
        return apply(row, *broadcast(*operands))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``{name}`` of every entry, with NumPy's broadcasting; declared by a user."
    DECLARED[name] = function
    return function


def _without_derivative(name: str) -> Callable[..., Any]:
    def refused(x: Expr) -> Expr:
        raise UnsupportedError(
            f"{name} was declared without a derivative; elementwise({name!r}, f, derivative) takes "
            "that as a function of expressions, None where it is zero"
        )

    return refused


def _check_name(name: object) -> None:
    if type(name) is not str or not name.isidentifier() or not name.isascii() or iskeyword(name):
        raise ValueError(f"the name of a function is a plain identifier, not {name!r:.60}")
    if name not in DECLARED and (name in TABLE or name in surface):
        raise ValueError(f"{name} is a function of the library; choose another name")


def _check_fields(name: str, what: object, text: object, count: int) -> None:
    """Refuse text that is not to be filled with so many operands."""
    if type(what) is not str or type(text) is not str:
        raise TypeError(f"{name}: texts by the names of languages, not {what!r:.40}: {text!r:.60}")
    known = {str(k) for k in range(count)}
    try:
        fields = list(Formatter().parse(text))
    except ValueError:
        fields = [("", text, "", None)]
    for _, field, form, conversion in fields:
        if field is not None and (field not in known or form or conversion):
            operands = " and ".join([f"{{{k}}}" for k in sorted(known)])
            raise ValueError(
                f"{name}: in {what} {text!r:.80} braces other than of {operands} are doubled"
            )


def _partial(name: str, derivative: Callable[..., Any], count: int) -> Partial:
    """The derivative of the operands, and of the value where it takes that too."""

    def partial(*nodes: Expr) -> Expr:
        found = as_expr(derivative(*nodes[: _arity(derivative, count)]))
        shape = nodes[0].shape
        if found.shape not in ((), shape):
            raise ShapeError(
                f"the derivative of {name} has shape {found.shape} for operands of shape {shape}"
            )
        return broadcast(found, nodes[0])[0]

    return partial


def _check_operands(name: str, derivative: Callable[..., Any] | None, count: int) -> None:
    """Refuse a derivative that cannot be called with the operands."""
    import inspect  # needed where functions are declared only

    if derivative is None:
        return
    try:
        inspect.signature(derivative).bind(*range(_arity(derivative, count)))
    except ValueError:  # of built-in functions nothing is known
        return
    except TypeError as error:
        raise TypeError(
            f"the derivative of {name} is called with as many operands as there are, {count}, or "
            f"with these and the value: {error}"
        ) from None


def _arity(function: Callable[..., Any], count: int) -> int:
    """The number of operands, and one more where the function cannot be called without the value.

    A further place that may be left out is the function's own: `out` of NumPy's, for one.
    """
    import inspect  # needed where functions are declared only

    for number in (count, count + 1):
        try:
            inspect.signature(function).bind(*range(number))
        except TypeError:
            continue
        return number
    return count


def _kernel(name: str, f: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(xp: Any, params: tuple[Any, ...], *arrays: Any) -> Any:
        wanted = np.broadcast_shapes(*[np.shape(a) for a in arrays])
        dtype = np.result_type(*arrays, np.float32)
        found = np.asarray(f(*np.broadcast_arrays(*arrays)))
        if found.dtype.kind not in "fiub":
            raise TypeError(f"{name} gave no real numbers, but {found.dtype}")
        if found.shape != wanted:
            raise ShapeError(f"{name} gave shape {found.shape} for operands of shape {wanted}")
        return found.astype(dtype, copy=False)

    return kernel
