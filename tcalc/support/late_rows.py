"""Tables whose rows stand in modules of their own, imported when a row is first asked for."""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import Any, TypeVar

from .collector import resting_collector

Row = TypeVar("Row")


class LateRows(UserDict[str, Row]):
    """Rows by name, each imported when it is first asked for, with all that it needs.

    Parameters
    ----------
    package : str
        Where names of modules begin.
    places : dict
        Where the row of each name stands: "module:name".
    """

    def __init__(self, package: str, places: dict[str, str]) -> None:
        self.package = package
        self.data: dict[str, Any] = dict(places)

    def __getitem__(self, name: str) -> Row:
        row = self.data[name]
        if isinstance(row, str):
            module, _, what = row.partition(":")
            with resting_collector(lasting=True):
                found = getattr(import_module(module, self.package), what)
            self.data[name] = row = found
        kept: Row = row
        return kept
