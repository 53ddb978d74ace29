"""Named equalities: algebra, stable forms, factorisations, eigenvalues; the strategy that applies
them, and the facts (signs, definiteness) that they ask for.

Where they hold is one rule for all. An equality of polynomials or of analytic functions, such as
0 x = 0 in the normal form or sin^2 + cos^2 = 1, is one of finite numbers: it may give a number
where arithmetic on infinity or nan has none, and derivatives depend on that. An equality whose one
side has no value where the other has one, such as exp(log(x)) = x at -2, is used only where facts
prove that the operands are inside. Between overflow and the right number, a rule takes the number.
Each row says its part: `Rule.domain`, `given` and `finite`; rows of matrices hold where the
factorisation that they cancel exists.

Reads graph, ops, ops.matrix.
"""

from . import algebra, factors, spectral, stability

__all__ = ["algebra", "factors", "spectral", "stability"]
