"""The batch (`vmap`) of a loop: one loop over the states of all items."""

from __future__ import annotations

from ..calculus.batching import with_batch_axis
from ..graph.extents import Extent
from ..graph.nodes import Apply, Expr
from ..graph.operators import Differentials
from .body import body_variable, derived_variable
from .derivatives import Primal, move_axis
from .normal_form import LoopOperands, normal_form_loop


def batched_loop(node: Apply, args: Differentials, extent: Extent) -> tuple[Expr, ...]:
    """One loop over the states of all items of a batch; states equal for all are not batched."""
    primal = Primal.of(node)
    body, n = primal.body, len(primal.body.states)
    given = {v: a for v, a in zip(body.formals, args, strict=True) if a is not None}
    several = body.varying([v.name for v in given])
    wide = {
        v: derived_variable("b", v, (extent,)) for k, v in enumerate(body.states) if k in several
    }
    pairs = zip(body.states, primal.operands[0], strict=True)
    inits = [_batch_operand(given.get(v), e, v in wide, extent) for v, e in pairs]
    scanned, captured = dict(primal.operands[1]), dict(primal.operands[2])
    for v, a in given.items():
        if v in scanned or v in captured:
            integer = v.integral
            wide[v] = body_variable("b" + v.name, (extent, *v.shape), integer)
            fed = scanned if v in scanned else captured
            fed[wide[v]] = move_axis(a, 1, 0) if v in scanned else a
    changed = with_batch_axis([body.outputs[k] for k in sorted(several)], dict(wide), extent)
    outputs = list(body.outputs)
    for k, e in zip(sorted(several), changed, strict=True):
        outputs[k] = e
    states = [wide.get(v, v) for v in body.states]
    made = normal_form_loop(
        node.op, states, outputs, inits, LoopOperands(scanned, captured), primal.steps
    )
    found = []
    for k, e in enumerate(made):
        if k % n not in several:
            found.append(_batch_operand(None, e, True, extent))
        else:
            found.append(e if k < n else move_axis(e, 1, 0))
    return tuple(found)


def _batch_operand(a: Expr | None, e: Expr, wide: bool, extent: Extent) -> Expr:
    """The operand for all items of a batch, broadcast where it has no batch axis."""
    if a is not None or not wide:
        return e if a is None else a
    (found,) = with_batch_axis([e], {}, extent)
    return found
