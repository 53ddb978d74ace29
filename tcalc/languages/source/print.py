"""Expressions as source code of programs that run without tcalc."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ...calculus.transforms import jacobian
from ...graph.nodes import Derivative, Expr
from ...graph.normal import bare
from ...graph.trees import leaves
from ...graph.variables import canonical_name, check_sizes, checked_extent
from ..index.formula import legible
from ..writing.layout import tokens
from .program import SourceProgram
from .registry import LANGUAGES
from .selfcheck import difference_check, shape_check

#: Formulas of more characters, or programs of more nodes, are not shown beside a function.
READABLE = 200


def function_name(name: object, reserved: Collection[str]) -> str:
    """The name as Python reads it, which must not mean anything yet."""
    plain = canonical_name(name) if isinstance(name, str) else ""
    if not plain.isidentifier() or plain in reserved or plain.startswith("__"):
        raise ValueError(f"a function needs an identifier of its own as name, not {name!r}")
    return plain


def _formulas(e: Any, program: SourceProgram) -> list[str]:
    """The text of every result that a person would read.

    Of a result with more signs and names than that hardly any form has so few characters, and the
    search for one takes longer than the program.
    """
    if len(program.nodes) > READABLE:
        return []
    short = [v for v in leaves(e) if not isinstance(v, Expr) or tokens(bare(v)) <= READABLE]
    return [text for text in map(legible, short) if len(text) <= READABLE]


def to_code(
    e: Any,
    language: str = "numpy",
    name: str = "f",
    check: bool = False,
    sizes: Mapping[str, int] | None = None,
) -> str:
    """Source of a function that computes the expression without tcalc.

    Parameters
    ----------
    e : expression, or nested tuples, lists and dicts of expressions
    language : str
        A row of `languages.source.registry`: ``"numpy"``, ``"cupy"``, ``"jax"``, ``"torch"``,
        ``"c"``, ``"cuda"``, ``"julia"``, ``"matlab"`` (which Octave runs too).
    name : str
        Name of the function, an identifier that means nothing in the language and does not start
        with two underscores. Its parameters are the variables, sorted by name, then dimensions that
        no variable has. Names that mean something in the language get an underscore behind.
    check : bool
        Append a self-check: run as a script, the source compares a derivative with central
        differences of what it is the derivative of, on random data.
    sizes : mapping from names of dimensions to int, optional
        Extents at which the program is to be fast, 100 where nothing is said: among equal forms and
        orders of multiplication it has those that a plan takes there. It is right at all extents.

    Returns
    -------
    str
        The source of a module. It computes the stable form that calling the expression computes,
        in float32 where all arrays are that, else in float64; by ``"torch"`` on the device of its
        tensors. JAX computes float64 where jax_enable_x64 is set, and functions are pure: what
        others raise (equal eigenvalues, singular matrices) is not a number there, and dimensions
        that no array has are static arguments of jax.jit. C and CUDA have one type, `float` where
        they are compiled with ``-DSINGLE``; functions in CUDA take arrays and a workspace of the
        device, and launch their kernels on a stream.

    Raises
    ------
    ValueError
        For another language or name.
    TypeError
        For what is no nest of expressions, keys of dicts that are no strings and numbers, and sizes
        that are no whole numbers or of what is no dimension.
    UnsupportedError
        Where the language has no word for an operator.
    """
    if language not in tuple(LANGUAGES):
        raise ValueError(f"no language {language!r}; one of {', '.join(LANGUAGES)}")
    spelling = LANGUAGES[language]
    sizes = {name: checked_extent(name, size) for name, size in (sizes or {}).items()}
    name = function_name(name, spelling.reserved)
    program = SourceProgram(spelling, e, sizes=sizes)
    check_sizes([leaf for leaf in leaves(e) if isinstance(leaf, Expr)], sizes)
    program.scope.checks = check
    function = program.function(name)._replace(formulas=_formulas(e, program))
    functions = [program.language.function(function)]
    moves = isinstance(e, Derivative) and any(v.name in program.variables for v in e.wrt[-1:])
    if check and isinstance(e, Derivative) and moves:
        before = e.of
        for v in e.wrt[:-1]:
            before = jacobian(before, v)
        earlier = SourceProgram(spelling, before, sizes=sizes)
        functions.append(earlier.language.function(earlier.function(f"{name}_before")))
        checked = difference_check(program, earlier, e.wrt, name)
    elif check:
        checked = shape_check(program, name)
    source = program.language.module(functions)
    return source + program.language.check(checked) if check else source
