"""`python -m tests.formula_tables [words]`: printed beside expected where they differ, by cause.

Words choose the tables, causes and rows whose names have them all.
"""

from __future__ import annotations

import sys
from collections import defaultdict

from . import TABLES
from .causes import cause
from .row import Formula


def main(words: list[str]) -> None:
    groups: dict[str, list[tuple[str, Formula, str]]] = defaultdict(list)
    for table, rows in TABLES.items():
        for row in rows:
            text = row.printed()
            if text != row.form:
                groups[cause(row, text)].append((table, row, text))
    total = sum(map(len, TABLES.values()))
    print(f"{sum(map(len, groups.values()))} of {total} rows differ")
    for name, found in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(f"\n== {name}: {len(found)}")
        for table, row, text in found:
            if all(w.lower() in f"{name} {table} {row.name}".lower() for w in words):
                print(f"{table}: {row.name}: d/d {row.by} of {row.text}   [{row.declared}]")
                print(f"    prints   {text}\n    expected {row.form}")


if __name__ == "__main__":
    main(sys.argv[1:])
