"""Groups of rules; importing the package registers them."""

from . import algebra, stability

__all__ = ["algebra", "stability"]
