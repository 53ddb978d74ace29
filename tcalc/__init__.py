"""tcalc: derivatives of tensor expressions, as formulas, code, numbers and structure.

>>> import tcalc as tc
>>> f = tc.parse("sum(log(1 + exp(-y .* (X*w))))", X=("m", "n"), y=("m",), w=("n",))
>>> tc.hessian(f, "w").shape
('n', 'n')
"""

from . import linalg as linalg
from . import rules as rules
from .array import *
from .assembly import CompiledStructured as CompiledStructured
from .blocks import BlockStructured as BlockStructured
from .check import check as check
from .compile import Compiled as Compiled
from .compile import compile as compile
from .comprehensions import build as build
from .compress import (
    Compressed as Compressed,
)
from .compress import (
    compress as compress,
)
from .declare import var as var
from .diagonals import *
from .errors import (
    Error as Error,
)
from .errors import (
    LinAlgError as LinAlgError,
)
from .errors import (
    MemoryLimitError as MemoryLimitError,
)
from .errors import (
    ParseError as ParseError,
)
from .errors import (
    ShapeError as ShapeError,
)
from .errors import (
    TraceError as TraceError,
)
from .errors import (
    UnsupportedError as UnsupportedError,
)
from .expand import expand as expand
from .explain import explain as explain
from .expr import Expr as Expr
from .folding import fold as fold
from .frontends.index import parse_index as parse_index
from .frontends.matrix import parse as parse
from .indexing import *
from .joining import *
from .newton import newton as newton
from .ops.elementwise import *
from .ops.linalg import *
from .ops.merge import *
from .ops.norms import *
from .ops.reductions import *
from .optimize import scipy_functions as scipy_functions
from .printers.code import to_code as to_code
from .printers.einsum import to_einsum as to_einsum
from .printers.index import to_index as to_index
from .printers.latex import to_latex as to_latex
from .printers.text import to_text as to_text
from .rewrite import simplify as simplify
from .structured import (
    Structured as Structured,
)
from .structured import (
    identity_like as identity_like,
)
from .transforms import *
from .views import *

__version__ = "0.1.0"
