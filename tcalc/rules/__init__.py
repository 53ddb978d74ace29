"""Groups of rules; importing the package registers them."""

from . import algebra, factors, spectral, stability

__all__ = ["algebra", "factors", "spectral", "stability"]
