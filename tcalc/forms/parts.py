"""Forms of large expressions, part by part: a name stands for what is repeated.

A search takes too long on hundreds of nodes, but readers, too, read such a formula by parts. So a
part that stands in several places is given its form, and in what reads it is a variable: symmetric
and positive definite where the part is known to be.
"""

from __future__ import annotations

from collections.abc import Callable

from ..graph.applications import is_symmetric, with_args
from ..graph.extents import ONE
from ..graph.nodes import Add, Apply, Einsum, Expr, Part, Var, intern, postorder
from ..graph.operators import Indicator, Selection
from ..graph.properties import SYMMETRIC, with_implied
from ..languages.writing.layout import tokens
from ..languages.writing.sharing import free_prefix, used_twice
from ..rules.facts import is_definite
from ..rules.strategy import substitute

#: Signs and names of what is named, and of a number that is: powers of others are brought together.
LEAST, NUMBER = 8, 20
#: Nodes of a part, and what has this many is one wherever it stands.
MANY = 60
#: Parts beyond which no other is named, and nodes of what nobody reads.
MAX_PARTS, MAX_NODES = 40, 1500


def by_parts(e: Expr, search: Callable[[Expr], Expr]) -> Expr:
    """The expression with the form of each part that `search` finds; what is too large as it is."""
    nodes = postorder([e])
    if len(nodes) > MAX_NODES:
        return e
    twice, prefix = used_twice(nodes), free_prefix("t", nodes)
    named: dict[Var, Expr] = {}
    short: dict[int, Expr] = {}
    for node in nodes:
        new = with_args(node, [short[id(arg)] for arg in node.args]) if node.args else node
        if node is not e and len(named) < MAX_PARTS and _is_part(new, id(node) in twice):
            name = _variable(f"{prefix}{len(named)}", node)
            named[name] = substitute(search(new), named)
            new = name
        short[id(node)] = new
    return substitute(search(short[id(e)]), named)


def _is_part(e: Expr, repeated: bool) -> bool:
    """Is an operand one that products around it do not open, and worth a name?"""
    inner = e.args[0] if _is_view(e) else e
    if isinstance(inner, Apply) and (
        isinstance(inner.op, Indicator | Selection) or inner.op.outputs > 1
    ):
        return False
    whole = isinstance(inner, Add | Apply | Part) or (isinstance(inner, Einsum) and inner.summed)
    if not whole or not inner.args:
        return False
    least = LEAST if e.ndim else NUMBER
    return (repeated and tokens(e) >= least) or len(postorder([e])) > MANY


def _is_view(e: Expr) -> bool:
    """Is it an operand with its axes in another order?"""
    if not isinstance(e, Einsum) or len(e.args) != 1 or e.summed or e.coef != ONE:
        return False
    return len(set(e.out)) == e.ndim == e.args[0].ndim


def _variable(name: str, e: Expr) -> Var:
    known = () if not is_symmetric(e) else ("positive_definite",) if is_definite(e) else SYMMETRIC
    made: Var = intern(Var, (name, e.shape, tuple(sorted(with_implied(known)))))
    return made
