"""The names of the library autograd over the transforms, so that files written for it need another
import and nothing else: transforms, functions with stated rules, optimizers, checks of
gradients.

Reads graph, ops, calculus, numpy, run.
"""

from __future__ import annotations

from builtins import dict as dict
from builtins import list as list
from builtins import tuple as tuple

from .. import numpy as numpy
from .extend import isinstance as isinstance
from .flattening import flatten as flatten
from .transforms import checkpoint as checkpoint
from .transforms import const_graph as const_graph
from .transforms import deriv as deriv
from .transforms import elementwise_grad as elementwise_grad
from .transforms import grad as grad
from .transforms import grad_and_aux as grad_and_aux
from .transforms import grad_named as grad_named
from .transforms import hessian as hessian
from .transforms import hessian_tensor_product as hessian_tensor_product
from .transforms import hessian_vector_product as hessian_vector_product
from .transforms import holomorphic_grad as holomorphic_grad
from .transforms import isbox as isbox
from .transforms import jacobian as jacobian
from .transforms import make_ggnvp as make_ggnvp
from .transforms import make_hvp as make_hvp
from .transforms import make_jvp as make_jvp
from .transforms import make_vjp as make_vjp
from .transforms import multigrad_dict as multigrad_dict
from .transforms import tensor_jacobian_product as tensor_jacobian_product
from .transforms import value_and_grad as value_and_grad
from .transforms import vector_jacobian_product as vector_jacobian_product
