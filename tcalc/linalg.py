"""Linear algebra under NumPy's names: functions of the last two axes."""

from .array import kron
from .ops.linalg import adj, det, inv, logdet, solve
from .ops.reductions import norm
from .views import trace

__all__ = ["adj", "det", "inv", "kron", "logdet", "norm", "solve", "trace"]
