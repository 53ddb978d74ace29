"""What a name of NumPy's stands for: the function of the table where an expression is among the
arguments, and NumPy's own where there is none."""

from __future__ import annotations

import functools
import types
from typing import Any

import numpy as np

from ..graph.arraylike import done
from ..graph.nodes import Expr
from ..ops.axes import atleast_1d
from ..ops.joining import array, concatenate, holds_expressions
from .calls import full_name, refusal, translated
from .table import FUNCTIONS

#: Functions that take anything: traced values among it mean what they mean to NumPy.
_CALLABLE = (types.FunctionType, types.BuiltinFunctionType)


class Rows:
    """`numpy.r_` and `numpy.c_`: items one behind the other, or as columns."""

    def __init__(self, theirs: Any, columns: bool) -> None:
        self._theirs, self._columns = theirs, columns

    def __getitem__(self, key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        if not holds_expressions(list(items)):
            return self._theirs[key]
        if any(isinstance(item, str) for item in items):
            raise refusal("r_ with directives in text")
        found = [np.r_[item] if isinstance(item, slice) else item for item in items]
        exprs = [atleast_1d(array(item)) for item in found]
        if not self._columns:
            return concatenate(exprs, 0)
        columns = [e[:, None] if isinstance(e, Expr) and e.ndim == 1 else e for e in exprs]
        return concatenate(columns, -1)


ROWS = {"r_": Rows(np.r_, False), "c_": Rows(np.c_, True)}


def _traced(values: Any) -> bool:
    return any(isinstance(v, Expr) or holds_expressions(v) for v in values)


def member(module: types.ModuleType, name: str) -> Any:
    """What `name` of a module of NumPy's is here.

    Types, constants and ufuncs, which have NumPy's protocol for expressions, are NumPy's.

    Raises
    ------
    AttributeError
        As NumPy.
    """
    theirs = getattr(module, name)
    if name in ROWS:
        return ROWS[name]
    dispatched = isinstance(theirs, _CALLABLE) or hasattr(theirs, "_implementation")
    if not dispatched or isinstance(theirs, type):
        return theirs
    key = full_name(theirs)
    ours = FUNCTIONS.get(key)

    def operation(*args: Any, **options: Any) -> Any:
        if ours is None:
            raise refusal(key)
        return translated(key, theirs, ours, args, options)

    @functools.wraps(theirs)
    def function(*args: Any, **options: Any) -> Any:
        if not _traced(args) and not _traced(options.values()):
            return theirs(*args, **options)
        return done(operation, args, options)

    return function
