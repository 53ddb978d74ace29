"""Records: data classes and named tuples that cost an import next to nothing.

The standard library writes the text of every method of a data class, and compiles each annotation
of a named tuple: half a millisecond a class, a tenth of all that runs before a first result. Here
all records share one text of each method; what asks for fields (`dataclasses.replace`, `fields`,
`typing.get_type_hints`) finds what it would find otherwise.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

Made = TypeVar("Made")


@dataclass_transform(field_specifiers=(field,))
def record(
    *,
    frozen: bool = False,
    eq: bool = True,
    order: bool = False,
    repr: bool = True,
    kw_only: bool = False,
) -> Callable[[type[Made]], type[Made]]:
    """Make a class of named fields, by the options of `dataclasses.dataclass`."""

    def decorated(made: type[Made]) -> type[Made]:
        dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(made)
        fields = getattr(made, "__dataclass_fields__")  # noqa: B009 - unknown to type checkers
        defaults = {k: one.default for k, one in fields.items() if one.default is not MISSING}
        made._defaults = defaults  # type: ignore[attr-defined]
        methods: dict[str, Any] = {"__init__": _init}
        if repr:
            methods["__repr__"] = _shown
        if frozen:
            methods |= {"__setattr__": _set, "__delattr__": _delete}
        if eq:
            made._compared = attrgetter(*fields)  # type: ignore[attr-defined]
            methods |= {"__eq__": _equal, "__hash__": _hash if frozen else None}
        if order:
            methods |= {"__lt__": _less, "__le__": _less_or_equal}
            methods |= {"__gt__": _greater, "__ge__": _greater_or_equal}
        for name, method in methods.items():
            if name not in made.__dict__ or (name == "__hash__" and made.__dict__[name] is None):
                setattr(made, name, method)
        return made

    return decorated


def _init(self: Any, *args: Any, **named: Any) -> None:
    values, places = self.__dict__, self.__match_args__
    if len(args) == len(places) == len(self.__dataclass_fields__) and not named:
        values.update(zip(places, args, strict=True))
    else:
        _fill(self, args, named)
    if hasattr(self, "__post_init__"):
        self.__post_init__()


def _fill(self: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Values by place and by name, and defaults."""
    values, places = self.__dict__, self.__match_args__
    if len(args) > len(places):
        raise TypeError(f"{type(self).__name__}() takes {len(places)} values, not {len(args)}")
    fields = self.__dataclass_fields__
    values.update(self._defaults)
    values.update(zip(places, args, strict=False))
    if named:
        first = places[: len(args)]
        for name in named:
            if name in first or name not in fields:
                how = "twice" if name in first else "as an unknown argument"
                raise TypeError(f"{type(self).__name__}() got {name!r} {how}")
        values.update(named)
    if len(values) < len(fields):
        for name, one in fields.items():
            if name not in values:
                values[name] = _made(type(self), one)


def _made(made: type, one: Any) -> Any:
    """What stands in a field that has no default of all records."""
    if one.default_factory is MISSING:
        raise TypeError(f"{made.__name__}() needs {one.name!r}")
    return one.default_factory()


@recursive_repr()
def _shown(self: Any) -> str:
    fields = [one for one in self.__dataclass_fields__.values() if one.repr]
    values = ", ".join([f"{one.name}={getattr(self, one.name)!r}" for one in fields])
    return f"{type(self).__qualname__}({values})"


def _set(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _hash(self: Any) -> int:
    return hash(self._compared(self))


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._compared(self) == other._compared(other)


def _less(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._compared(self) < other._compared(other)


def _less_or_equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._compared(self) <= other._compared(other)


def _greater(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._compared(self) > other._compared(other)


def _greater_or_equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._compared(self) >= other._compared(other)


if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class _Named(type):
        def __new__(cls, name, bases, body):
            if not bases:  # `NamedTuple` itself
                return super().__new__(cls, name, bases, body)
            fields = body.get("__annotations__", {})
            defaults = [body[field] for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])
            for key, value in body.items():
                if key not in fields and key != "__module__":
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Named):
        """As `typing.NamedTuple`."""
