"""The table of nodes: one value a key while somebody holds it, and nothing of what nobody does."""

from __future__ import annotations

import gc
import threading
import weakref

import tcalc as tc
from tcalc.graph import nodes
from tcalc.support.weak_table import WeakTable


class Value:
    pass


def test_the_value_that_was_there_first_stays() -> None:
    table = WeakTable[Value]()
    one, other = Value(), Value()
    assert table.find("key") is None
    assert table.put("key", one) is one
    assert table.put("key", other) is one
    found = table.find("key")
    assert found is not None
    assert found() is one


def test_what_nobody_holds_is_gone_and_may_come_back() -> None:
    table = WeakTable[Value]()
    first = table.put("key", Value())
    seen = weakref.ref(first)
    del first
    gc.collect()
    assert seen() is None
    assert not table.rows
    again = Value()
    assert table.put("key", again) is again


def test_a_dead_row_makes_room_before_it_is_told() -> None:
    """Where a value goes while its row is looked up, the new one takes its place and stays."""
    table = WeakTable[Value]()
    dead = table.put("key", Value())
    row = table.rows["key"]
    del dead
    gc.collect()
    table.rows["key"] = row  # as it is before the callback runs
    new = Value()
    assert table.put("key", new) is new
    table._gone(row)
    found = table.find("key")
    assert found is not None
    assert found() is new


def test_threads_that_build_the_same_get_the_same() -> None:
    x = tc.var("x", "n")
    found: list[tc.Expr] = []

    def build() -> None:
        for k in range(200):
            e = tc.sin(k * x) + x * k
        found.append(e)

    threads = [threading.Thread(target=build) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1


def test_nodes_that_nobody_holds_leave_the_table() -> None:
    gc.collect()
    before = len(nodes._table.rows)
    x = tc.var("x_of_weak_table", "n")
    e = [tc.sin(k * x) for k in range(50)]
    assert len(nodes._table.rows) >= before + 50
    del e, x
    gc.collect()
    assert len(nodes._table.rows) <= before + 8
