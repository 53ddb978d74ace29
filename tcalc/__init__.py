"""tcalc: derivatives of tensor expressions, as formulas, code, numbers and structure.

>>> import tcalc as tc
>>> f = tc.parse("sum(log(1 + exp(-y .* (X*w))))", X=("m", "n"), y=("m",), w=("n",))
>>> tc.hessian(f, "w").shape
('n', 'n')
"""

from . import linalg, rules
from .array import (
    add,
    broadcast_to,
    const,
    cross,
    diag,
    diagonal,
    dot,
    einsum,
    eye,
    kron,
    matmul,
    mean,
    multiply,
    negative,
    ones,
    outer,
    ravel,
    reshape,
    square,
    subtract,
    sum,
    tensordot,
    trace,
    transpose,
    zeros,
)
from .check import check
from .calculus import (
    derivative,
    grad,
    hessian,
    hvp,
    jacobian,
    jvp,
    value_and_grad,
    vjp,
)
from .compile import Compiled, compile
from .errors import (
    Error,
    LinAlgError,
    MemoryLimitError,
    ParseError,
    ShapeError,
    TraceError,
    UnsupportedError,
)
from .explain import explain
from .expr import Expr, var
from .frontends.matrix import parse
from .ops.elementwise import (
    abs,
    arccos,
    arcsin,
    arctan,
    arctan2,
    clip,
    cos,
    cosh,
    digamma,
    divide,
    equal,
    erf,
    erfc,
    exp,
    exp2,
    expm1,
    floor,
    gammaln,
    greater,
    greater_equal,
    hypot,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    log_ndtr,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    mod,
    ndtr,
    not_equal,
    polygamma,
    power,
    reciprocal,
    relu,
    sigmoid,
    sign,
    sin,
    sinh,
    softplus,
    sqrt,
    tan,
    tanh,
    where,
    xlogy,
)
from .ops.linalg import adj, det, inv, logdet, solve
from .ops.reductions import (
    arange,
    cumsum,
    log_softmax,
    logsumexp,
    max,
    min,
    norm,
    prod,
    softmax,
    std,
)
from .printers.code import to_code
from .printers.einsum import to_einsum
from .printers.latex import to_latex
from .printers.text import to_text
from .rewrite import simplify
from .structured import Compressed, Structured, compress

__version__ = "0.1.0"
