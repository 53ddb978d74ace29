"""tcalc: derivatives of tensor expressions, as formulas, code, numbers and structure.

>>> import tcalc as tc
>>> f = tc.parse("sum(log(1 + exp(-y .* (X*w))))", X=("m", "n"), y=("m",), w=("n",))
>>> tc.hessian(f, "w").shape
('n', 'n')
"""

from . import linalg as linalg
from . import numpy as numpy
from . import rules as rules
from . import scipy as scipy
from .app.check import check as check
from .app.dot import to_dot as to_dot
from .app.explain import explain as explain
from .compression.compress import Compressed as Compressed
from .compression.compress import compress as compress
from .graph.nodes import Expr as Expr
from .graph.variables import var as var
from .languages.einsum.parse import parse_einsum as parse_einsum
from .languages.einsum.print import to_einsum as to_einsum
from .languages.index.parse import parse_index as parse_index
from .languages.index.print import to_index as to_index
from .languages.latex import to_latex as to_latex
from .languages.mathml import to_mathml as to_mathml
from .languages.matrix.parse import parse as parse
from .languages.matrix.print import to_text as to_text
from .languages.source.print import to_code as to_code
from .loops.build import build as build
from .loops.fold import fold as fold
from .loops.scans import *
from .minimise.newton import newton as newton
from .minimise.scipy_objective import scipy_functions as scipy_functions
from .ops.arithmetic import *
from .ops.axes import *
from .ops.bessel import *
from .ops.constructors import *
from .ops.declared import elementwise as elementwise
from .ops.diagonals import *
from .ops.differences import *
from .ops.einsum import *
from .ops.elementwise import *
from .ops.entrywise import *
from .ops.incomplete import *
from .ops.indexing import *
from .ops.joining import *
from .ops.matrix.inverse import *
from .ops.matrix.norms import *
from .ops.ordering import *
from .ops.products import *
from .ops.reductions import *
from .ops.reshape import *
from .ops.special import *
from .ops.stacking import *
from .ops.statistics import *
from .ops.triangles import *
from .ops.views import *
from .rules.expand import expand as expand
from .rules.strategy import simplify as simplify
from .run.backends import wait_for_compiler as wait_for_compiler
from .run.compile import compile as compile
from .run.compiled import Compiled as Compiled
from .run.structured_results import CompiledStructured as CompiledStructured
from .run.transforms import *
from .structured.block_jacobian import BlockJacobian as BlockJacobian
from .structured.blocks import BlockStructured as BlockStructured
from .structured.identity import identity_like as identity_like
from .structured.tensor import Structured as Structured
from .support.errors import Error as Error
from .support.errors import LimitError as LimitError
from .support.errors import LinAlgError as LinAlgError
from .support.errors import MemoryLimitError as MemoryLimitError
from .support.errors import ParseError as ParseError
from .support.errors import PartitionError as PartitionError
from .support.errors import ShapeError as ShapeError
from .support.errors import TraceError as TraceError
from .support.errors import UnsupportedError as UnsupportedError
from .support.limits import limits as limits
from .support.version import __version__ as __version__
