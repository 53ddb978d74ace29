"""All kinds of steps by name."""

from __future__ import annotations

from .entrywise import ENTRYWISE
from .factorisations import FACTORISATIONS
from .gathers import GATHERS
from .kind import Kind
from .operators import OPERATORS
from .products import PRODUCTS
from .sparse import SPARSE
from .strided import STRIDED
from .views import VIEWS

#: A step's kind is a key.
KINDS: dict[str, Kind] = {
    kind.name: kind
    for family in (VIEWS, ENTRYWISE, PRODUCTS, SPARSE, GATHERS, STRIDED, FACTORISATIONS, OPERATORS)
    for kind in family
}
