"""Factors that are kept, of one tensor or of blocks."""

from __future__ import annotations

from typing import Any

from .solvers.base import Factored


class Factor(Factored):
    """A factored tensor, or factored blocks: what ``H.factor(damping)`` returns."""

    def __init__(self, of: Any, damping: float) -> None:
        self._damping = damping
        self._held, self.solver, self._method = of.with_factors(damping)

    def __reduce__(self) -> tuple[Any, ...]:
        return Factor, (self._held, self._damping)

    def solve(self, g: Any) -> Any:
        """x with H x = g, damped as the factor is."""
        return self._held.solve(g, self._damping)

    def __repr__(self) -> str:
        return f"<Factor of {self._held!r}: {self._method}>"
