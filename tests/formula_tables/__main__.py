"""`python -m tests.formula_tables [words]`: printed beside expected where they differ, by cause.

Words choose the tables, causes and rows whose names have them all. `--write` alone writes the names
of the rows that differ down as those that are open.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

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
    if words == ["--write"]:
        write_open(sorted(row.name for found in groups.values() for _, row, _ in found))
        return
    total = sum(map(len, TABLES.values()))
    print(f"{sum(map(len, groups.values()))} of {total} rows differ")
    for name, found in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(f"\n== {name}: {len(found)}")
        for table, row, text in found:
            if all(w.lower() in f"{name} {table} {row.name}".lower() for w in words):
                print(f"{table}: {row.name}: d/d {row.by} of {row.text}   [{row.declared}]")
                print(f"    prints   {text}\n    expected {row.form}")


def write_open(names: list[str]) -> None:
    """Put the names of rows that differ into `open_rows.py`."""
    path = Path(__file__).with_name("open_rows.py")
    head, _, rest = path.read_text().partition("frozenset({")
    listed = "\n".join([f'    "{name}",' for name in names])
    path.write_text(f"{head}frozenset({{\n{listed}\n{rest[rest.index('})') :]}")


if __name__ == "__main__":
    main(sys.argv[1:])
