"""tcalc: derivatives of tensor expressions, as formulas, code, numbers and structure.

>>> import tcalc as tc
>>> f = tc.parse("sum(log(1 + exp(-y .* (X*w))))", X=("m", "n"), y=("m",), w=("n",))
>>> tc.hessian(f, "w").shape
('n', 'n')
"""

import typing as _typing

from .support.collector import resting_collector as _resting_collector

with _resting_collector(lasting=True):
    from . import linalg as linalg
    from . import numpy as numpy
    from . import rules as rules
    from . import scipy as scipy
    from .graph.arraylike import surface as _surface
    from .graph.nodes import Expr as Expr
    from .graph.variables import var as var
    from .loops.build import build as build
    from .loops.fold import fold as fold
    from .loops.scans import *
    from .ops.arithmetic import *
    from .ops.axes import *
    from .ops.bessel import *
    from .ops.constructors import *
    from .ops.cumulative import *
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
    from .ops.polynomials import *
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
    from .run.transforms import *
    from .support.errors import DeclarationError as DeclarationError
    from .support.errors import Error as Error
    from .support.errors import LimitError as LimitError
    from .support.errors import LinAlgError as LinAlgError
    from .support.errors import MemoryLimitError as MemoryLimitError
    from .support.errors import ParseError as ParseError
    from .support.errors import PartitionError as PartitionError
    from .support.errors import RangeError as RangeError
    from .support.errors import ShapeError as ShapeError
    from .support.errors import TraceError as TraceError
    from .support.errors import UnsupportedError as UnsupportedError
    from .support.late_rows import LateRows as _LateRows
    from .support.limits import limits as limits
    from .support.version import __version__ as __version__

# What a first call of compiled text does without is imported when it is named: parsers, printers,
# compression, what a person asks for.
if _typing.TYPE_CHECKING:
    from .app.check import check as check
    from .app.dot import to_dot as to_dot
    from .app.explain import explain as explain
    from .compression.compress import Compressed as Compressed
    from .compression.compress import compress as compress
    from .languages.einsum.parse import parse_einsum as parse_einsum
    from .languages.einsum.print import to_einsum as to_einsum
    from .languages.index.parse import parse_index as parse_index
    from .languages.index.print import to_index as to_index
    from .languages.latex import to_latex as to_latex
    from .languages.mathml import to_mathml as to_mathml
    from .languages.matrix.parse import parse as parse
    from .languages.matrix.print import to_text as to_text
    from .languages.source.print import to_code as to_code
    from .minimise.newton import newton as newton
    from .minimise.scipy_objective import scipy_functions as scipy_functions
    from .run.structured_results import CompiledStructured as CompiledStructured
    from .structured.block_jacobian import BlockJacobian as BlockJacobian
    from .structured.blocks import BlockStructured as BlockStructured
    from .structured.identity import identity_like as identity_like
    from .structured.tensor import Structured as Structured
else:
    _later = _LateRows(
        __name__,
        {
            "check": ".app.check:check",
            "to_dot": ".app.dot:to_dot",
            "explain": ".app.explain:explain",
            "Compressed": ".compression.compress:Compressed",
            "compress": ".compression.compress:compress",
            "parse_einsum": ".languages.einsum.parse:parse_einsum",
            "to_einsum": ".languages.einsum.print:to_einsum",
            "parse_index": ".languages.index.parse:parse_index",
            "to_index": ".languages.index.print:to_index",
            "to_latex": ".languages.latex:to_latex",
            "to_mathml": ".languages.mathml:to_mathml",
            "parse": ".languages.matrix.parse:parse",
            "to_text": ".languages.matrix.print:to_text",
            "to_code": ".languages.source.print:to_code",
            "newton": ".minimise.newton:newton",
            "scipy_functions": ".minimise.scipy_objective:scipy_functions",
            "CompiledStructured": ".run.structured_results:CompiledStructured",
            "BlockJacobian": ".structured.block_jacobian:BlockJacobian",
            "BlockStructured": ".structured.blocks:BlockStructured",
            "identity_like": ".structured.identity:identity_like",
            "Structured": ".structured.tensor:Structured",
        },
    )

    def __getattr__(name):
        if name not in _later:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = _later[name]
        return _later[name]

    def __dir__():
        return sorted({*globals(), *_later})

    __all__ = [name for name in __dir__() if not name.startswith("_")]

_surface.data |= {
    "repr_latex": "tcalc.languages.latex:repr_latex",
    "str": "tcalc.languages.matrix.print:to_text",
}
