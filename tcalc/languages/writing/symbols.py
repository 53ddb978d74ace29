"""Symbols for names: distinct names have distinct symbols."""

from __future__ import annotations

from collections.abc import Callable


class Symbols:
    """The symbols of the names in one formula, each given when its name is first asked for.

    Parameters
    ----------
    pretty : callable
        The symbol of a name that reads best; several names may share it.
    exact : callable
        A symbol that no two names share, for names whose best one is taken.
    """

    def __init__(self, pretty: Callable[[str], str], exact: Callable[[str], str]) -> None:
        self.pretty, self.exact = pretty, exact
        self.given: dict[str, str] = {}
        self.taken: set[str] = set()

    def __getitem__(self, name: str) -> str:
        if name not in self.given:
            found = self.pretty(name)
            self.given[name] = self.exact(name) if found in self.taken else found
            self.taken.add(self.given[name])
        return self.given[name]
