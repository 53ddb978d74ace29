"""Symbols for names: their words, and that distinct names have distinct symbols."""

from __future__ import annotations

import re
from collections.abc import Callable

GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa",
    "lambda", "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi",
    "omega", "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi",
    "Omega",
}  # fmt: skip
SHORTENED = {"lam": "lambda", "eps": "epsilon"}


def words_of(name: str) -> list[str]:
    """The word of a name, and those of its subscript: digits at its end, parts behind `_`."""
    parts = [p for p in re.split(r"_+|(?<=[^\W\d_])(?=\d)", name) if p] or [name]
    return [SHORTENED.get(part, part) for part in parts]


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
