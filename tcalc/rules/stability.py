"""Forms that stay finite: the same values without overflow or cancellation."""

from __future__ import annotations

from ..graph.applications import apply
from ..graph.extents import ONE
from ..graph.nodes import Apply, Einsum, Expr
from ..graph.normal import einsum
from ..graph.operators import TABLE
from ..ops.arithmetic import sum
from ..ops.elementwise import divide, exp, log, log1p, logaddexp, reciprocal, sigmoid, softplus
from ..ops.reductions import LOGSUMEXP, logsumexp
from .strategy import rule

STABLE = "stability"

rule("softplus", STABLE, lambda a: log(1 + exp(a)), lambda a: softplus(a))
rule("softplus-log1p", STABLE, lambda a: log1p(exp(a)), lambda a: softplus(a))
rule("logaddexp", STABLE, lambda a, b: log(exp(a) + exp(b)), lambda a, b: logaddexp(a, b))
rule("sigmoid", STABLE, lambda a: reciprocal(1 + exp(a)), lambda a: sigmoid(-a))
rule("over-1-plus-exp", STABLE, lambda a, b: divide(b, 1 + exp(a)), lambda a, b: b * sigmoid(-a))
rule("exp-times-sigmoid", STABLE, lambda a: exp(a) * sigmoid(-a), lambda a: sigmoid(a))
rule("one-minus-sigmoid", STABLE, lambda a: 1 - sigmoid(a), lambda a: sigmoid(-a))
rule("log-sigmoid", STABLE, lambda a: log(sigmoid(a)), lambda a: -softplus(-a))


def _sum_of_exp(e: Expr) -> Expr | None:
    """logsumexp where e is a (broadcast, permuted) sum of exponentials over axes; else None."""
    if not isinstance(e, Einsum) or len(e.args) != 1 or e.coef != ONE:
        return None
    if not e.summed:
        inner = _sum_of_exp(e.args[0])
        if inner is None:
            return None
        return einsum([inner], e.labels, e.out, ONE, dict(enumerate(e.extents)))
    (arg,), (word,) = e.args, e.labels
    if not isinstance(arg, Apply) or arg.op is not TABLE["exp"] or len(set(word)) < len(word):
        return None
    summed = [label for label in word if label not in e.out]
    order = [word.index(label) for label in (*e.out, *summed)]
    moved = einsum([arg.args[0]], [range(arg.ndim)], order)
    return apply(LOGSUMEXP, moved, params=(len(summed),))


def _log_sum_exp(e: Expr) -> Expr | None:
    assert isinstance(e, Apply)
    return _sum_of_exp(e.args[0])


def _softmax(e: Expr) -> Expr | None:
    """exp(a) over a sum of exponentials, also where it is one factor of a product."""
    assert isinstance(e, Apply)
    top, bottom = e.args
    lse = _sum_of_exp(bottom)
    if lse is None:
        return None
    if _is_exp(top):
        return exp(top.args[0] - lse)
    if not isinstance(top, Einsum) or top.summed:
        return None
    for k, (arg, word) in enumerate(zip(top.args, top.labels, strict=True)):
        if _is_exp(arg) and word == top.out:
            args = [*top.args[:k], exp(arg.args[0] - lse), *top.args[k + 1 :]]
            return einsum(args, top.labels, top.out, top.coef, dict(enumerate(top.extents)))
    return None


def _is_exp(e: Expr) -> bool:
    return isinstance(e, Apply) and e.op is TABLE["exp"]


rule(
    "log-sum-exp",
    STABLE,
    lambda x: log(sum(exp(x))),
    lambda x: logsumexp(x),
    "log",
    _log_sum_exp,
    shape=(3,),
)
rule(
    "softmax", STABLE, lambda x: divide(exp(x), sum(exp(x))), lambda x: exp(x - logsumexp(x)),
    "divide", _softmax, shape=(3,),
)  # fmt: skip
