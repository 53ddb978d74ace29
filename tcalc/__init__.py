"""tcalc: derivatives of tensor expressions, as formulas, code, numbers and structure.

>>> import tcalc as tc
>>> f = tc.parse("sum(log(1 + exp(-y .* (X*w))))", X=("m", "n"), y=("m",), w=("n",))
>>> tc.hessian(f, "w").shape
('n', 'n')
"""

# The order matters in one place: `var` is the constructor of variables, not the variance that the
# star imports know under NumPy's name.
from . import linalg, rules
from .array import *
from .calculus import derivative, grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from .check import check
from .compile import Compiled, compile
from .declare import var
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
from .expr import Expr
from .frontends.matrix import parse
from .ops.elementwise import *
from .ops.linalg import *
from .ops.reductions import *
from .printers.code import to_code
from .printers.einsum import to_einsum
from .printers.latex import to_latex
from .printers.text import to_text
from .rewrite import simplify
from .structured import Compressed, Structured, compress
from .views import *

__version__ = "0.1.0"
