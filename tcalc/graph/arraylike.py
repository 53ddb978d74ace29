"""How expressions behave as arrays: Python's operators, ndarray's methods, NumPy's protocols.

Every method looks its function up by name; the modules that define the functions fill the table.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from dis import opname
from importlib import import_module
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..support.errors import TraceError
from ..support.late_rows import LateRows
from .extents import Shape, show_shape

if TYPE_CHECKING:
    from .nodes import Expr

Binary = Callable[[Any, object], "Expr"]
Operation = Callable[..., Any]


class _Retrace(Protocol):
    def result(self, operation: Operation, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """What an operation gives, which may be known."""


#: For each thread, what keeps the operations of a function that is traced.
OPEN = threading.local()

#: What Python operators, ndarray methods and NumPy calls on expressions mean; upper layers fill it.
surface: LateRows[Callable[..., Any]] = LateRows(__package__, {})


def done(operation: Operation, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What an operation gives, found again where a function is traced again."""
    retrace: _Retrace | None = getattr(OPEN, "retrace", None)
    if retrace is None:
        return operation(*args, **options)
    return retrace.result(operation, args, options)


def _done(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return done(surface[name], args, options)


def _infix(name: str) -> tuple[Binary, Binary]:
    def plain(self: Expr, other: object) -> Expr:
        result: Expr = _done(name, (self, other), {})
        return result

    def swapped(self: Expr, other: object) -> Expr:
        result: Expr = _done(name, (other, self), {})
        return result

    return plain, swapped


def _operation(name: str) -> Callable[..., Any]:
    def method(self: Expr, /, *args: object, **options: object) -> Any:
        return _done(name, (self, *args), options)

    return _named(method, name)


def _method(name: str) -> Callable[..., Any]:
    def method(self: Expr, /, *args: object, **options: object) -> Any:
        return surface[name](self, *args, **options)

    return _named(method, name)


def _named(method: Callable[..., Any], name: str) -> Callable[..., Any]:

    method.__name__ = name
    method.__doc__ = f"As `tcalc.{name}` with this expression as first argument."
    return method


def _numpys(name: str) -> Callable[..., Any]:
    method = _operation(f"ndarray.{name}")
    method.__name__ = name
    method.__doc__ = f"As `numpy.ndarray.{name}`."
    return method


#: The package, whose own frames say nothing of what a user called.
OWN = __package__.partition(".")[0]


def _foreign(frame: FrameType | None) -> str:
    """What to write where a method of a masked array or a table wants an array of an expression."""
    given, name = None, ""
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] != OWN:
        # The outermost: others may be half made, of which nothing but the type can be asked.
        found = frame.f_locals.get("self")
        if hasattr(type(found), "__array__"):
            given, name = found, ""
        elif given is not None:
            name = name or _name_of(given, frame)
        frame = frame.f_back
    if given is None:
        return ""
    shown = f"a {type(given).__name__} of shape {np.shape(given)}"
    shown = f"`{name}`, {shown}," if name else shown
    plain = (
        f"{name}.filled(...)" if hasattr(type(given), "filled") else f"np.asarray({name or '...'})"
    )
    return f"{shown} takes no expressions, which are no arrays; write {plain} in its place"


def _name_of(value: object, frame: FrameType) -> str:
    """The name by which a function reads a value; nothing where it has none."""
    code, known = frame.f_code, {**frame.f_globals, **frame.f_locals}
    names = (*code.co_varnames, *code.co_cellvars, *code.co_freevars, *code.co_names)
    return next((name for name in names if known.get(name) is value), "")


def _stand_in(frame: FrameType | None) -> str:
    """What to call where a function of SciPy's wants an array: nothing where none does."""
    inside, module = False, ""
    while frame is not None:
        package, _, rest = str(frame.f_globals.get("__name__", "")).partition(".")
        if package == "scipy":
            inside, top = True, rest.partition(".")[0]
            module = module if top.startswith("_") else f".{top}"
        frame = frame.f_back
    if not inside:
        return ""
    if module == ".sparse":
        return (
            "a sparse matrix takes no expressions: give it to the function as an argument, or "
            "write a variable, of which it is the data"
        )
    ours = f"{__package__.partition('.')[0]}.scipy{module}"
    found = f"; {ours} has some for expressions, under the same names" if _has_own(ours) else ""
    return f"functions of scipy{module} make arrays of what they are given{found}"


def _written_for_array(frame: FrameType) -> str:
    """What to write where an array is made of an expression, by the instruction that makes it."""
    done = opname[frame.f_code.co_code[frame.f_lasti]]
    setting = "entries of an array of numbers cannot be set to it: stack or concatenate parts"
    reading = "array[i] at an index i is const(array)[i]"
    listed = (
        "np.array([...]) of expressions is stack (and tcalc.numpy.array), and a list among "
        "arguments is a nest of numbers: give an array"
    )
    known = {"STORE_SUBSCR": setting, "BINARY_SUBSCR": reading}
    if done in known:
        return known[done]
    return listed if done.startswith("CALL") else f"{setting}; {reading}; {listed}"


def _has_own(module: str) -> bool:
    """Has a module of ours functions of its own, and not only refusals of others?"""
    if not find_spec(module):
        return False
    held = vars(import_module(module))
    return "__path__" in held or any(
        name[0] != "_" and str(getattr(value, "__module__", "")).startswith(module)
        for name, value in held.items()
    )


class Evaluated:
    """What is evaluated by calling it with arrays: expressions, and nests of them."""

    __slots__ = ()

    __call__ = _method("evaluate")
    _repr_latex_ = _method("repr_latex")


class ArrayMethods(Evaluated):
    """The operators, methods and protocols that expressions have in common with arrays."""

    __slots__ = ()

    shape: Shape

    def text(self, where: bool = False) -> str:
        """The formula that `str` is; with `where`, what is repeated in it has a name."""
        found: str = surface["str"](self, where=where)
        return found

    @property
    def T(self) -> Expr:
        """The expression with its axes in reverse."""
        result: Expr = _done("transpose", (self,), {})
        return result

    @property
    def mT(self) -> Expr:
        """The transposed matrices of the last two axes."""
        result: Expr = _done("matrix_transpose", (self,), {})
        return result

    @property
    def size(self) -> int:
        """The number of entries, where all extents are numbers."""
        count: int = surface["ndarray.size"](self)
        return count

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of numbers in expressions: arrays of float32 are computed with as such."""
        return np.dtype(np.float64)

    @property
    def real(self) -> Expr:
        """The expression itself: numbers are real."""
        return self  # type: ignore[return-value]

    @property
    def imag(self) -> Expr:
        """Zeros of the same shape: numbers are real."""
        result: Expr = surface["imag"](self)
        return result

    @property
    def flat(self) -> Iterator[Expr]:
        """The entries in C order."""
        return iter(surface["ndarray.ravel"](self))

    __add__, __radd__ = _infix("add")
    __sub__, __rsub__ = _infix("subtract")
    __mul__, __rmul__ = _infix("multiply")
    __truediv__, __rtruediv__ = _infix("divide")
    __pow__, __rpow__ = _infix("power")
    __matmul__, __rmatmul__ = _infix("matmul")
    __mod__, __rmod__ = _infix("mod")
    __floordiv__, __rfloordiv__ = _infix("floor_divide")
    __and__, __rand__ = _infix("bitwise_and")
    __xor__, __rxor__ = _infix("bitwise_xor")
    __or__, __ror__ = _infix("bitwise_or")
    __lt__, __gt__ = _infix("less")
    __le__, __ge__ = _infix("less_equal")
    __eq__ = _infix("equal")[0]  # type: ignore[assignment]
    __ne__ = _infix("not_equal")[0]  # type: ignore[assignment]
    __hash__ = object.__hash__

    __neg__ = _operation("negative")
    __abs__ = _operation("abs")
    __invert__ = _operation("bitwise_not")
    __getitem__ = _operation("getitem")
    all = _numpys("all")
    any = _numpys("any")
    argmax = _numpys("argmax")
    argmin = _numpys("argmin")
    argsort = _numpys("argsort")
    clip = _numpys("clip")
    conj = _numpys("conj")
    conjugate = _numpys("conjugate")
    copy = _numpys("copy")
    cumprod = _numpys("cumprod")
    cumsum = _numpys("cumsum")
    diagonal = _numpys("diagonal")
    dot = _numpys("dot")
    flatten = _numpys("flatten")
    max = _numpys("max")
    mean = _numpys("mean")
    min = _numpys("min")
    prod = _numpys("prod")
    ravel = _numpys("ravel")
    repeat = _numpys("repeat")
    reshape = _numpys("reshape")
    round = _numpys("round")
    squeeze = _numpys("squeeze")
    std = _numpys("std")
    sum = _numpys("sum")
    swapaxes = _numpys("swapaxes")
    take = _numpys("take")
    trace = _numpys("trace")
    transpose = _numpys("transpose")
    var = _numpys("var")
    astype = _numpys("astype")
    item = _numpys("item")
    sort = _numpys("sort")
    tolist = _numpys("tolist")
    subs = _method("subs")
    diff = _method("differentiate")
    __str__ = _method("str")
    __repr__ = _method("str")
    __array_ufunc__ = _operation("array_ufunc")
    __array_function__ = _operation("array_function")

    __pos__ = _method("positive")

    def __bool__(self) -> bool:
        raise TraceError(
            "an expression has no truth value; write where(condition, a, b), p & q and p | q for "
            "`and` and `or`, and fold(..., until=condition) for `while`"
        )

    def __format__(self, form: str) -> str:
        if form:
            raise TraceError(
                f"an expression has no digits to be written as {form!r}: it is a formula until it "
                "is called with values"
            )
        return str(self)

    def __iter__(self) -> Iterator[Expr]:
        if not self.shape:
            raise TypeError("a scalar expression cannot be iterated over")
        extent = self.shape[0]
        if isinstance(extent, str):
            raise TypeError(
                f"the extent {extent} of the first index is not known yet; "
                "build(lambda i: ..., n) makes an entry for every i, and fold goes through them"
            )
        return iter([self[i] for i in range(extent)])

    def __setitem__(self, key: object, value: object) -> None:
        raise TraceError(
            "entries of an expression cannot be set; write where(condition, a, b), stack or "
            "concatenate parts, makediag or maketrian of packed diagonals and triangles, or gather "
            "with x[places] what stands elsewhere"
        )

    def __len__(self) -> int:
        if not self.shape or isinstance(self.shape[0], str):
            advice = f"; write parse('extent({self.shape[0]})')" if self.shape else ""
            shape = show_shape(self.shape)
            raise TypeError(f"an expression of shape {shape} has no len(){advice}")
        return self.shape[0]

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise TraceError(
            _stand_in(sys._getframe(1))
            or _foreign(sys._getframe(1))
            or f"an expression is not an array; {_written_for_array(sys._getframe(1))}"
        )

    def __float__(self) -> float:
        raise TraceError(
            "an expression is not a number: call it with values to evaluate it; functions of "
            "`math` take numbers alone, those of NumPy expressions too; arrays of numbers cannot "
            "take expressions, write stack or concatenate"
        )

    __int__ = __complex__ = __float__

    def __index__(self) -> int:
        raise TraceError(
            "an expression is not a number, nor the end of a range; call it with values, and index "
            "const(array) in place of an array or a list"
        )
