"""Which arrays of a program may be overwritten: large ones that nothing reads any more."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from ...graph.extents import ONE
from ...graph.factors import selects
from ...graph.nodes import Add, Apply, Const, Einsum, Expr
from ...support.limits import spend
from .language import PRODUCT, Code, Language
from .solves import factored
from .values import Narrow

#: Texts of values that are searched for a name in a step.
SEARCHED_A_STEP = 8


class Ownership:
    """What is known of the values of one program.

    Parameters
    ----------
    nodes : sequence of Expr
        All that is written, operands first.
    ranks : sequence of int
        The numbers of axes of the parameters.

    Attributes
    ----------
    largest : int or inf
        As many axes have arrays that are overwritten; none are where there are constants, which
        may be of higher precision.
    readers : dict
        The nodes that a node is an operand of, by its identity; once for each time.
    uses : Counter
        How often a node is read, by its identity, as everything here.
    codes, narrow : dict
        What is written, and of arrays that repeat entries those that they repeat.
    fresh : set
        New arrays.
    waiting : set
        Products that are written where they are read.
    ends : set
        The roots.
    """

    language: Language

    def __init__(self, nodes: Sequence[Expr], ranks: Sequence[int]) -> None:
        self.nodes = nodes
        self.readers: dict[int, list[Expr]] = {}
        for node in nodes:
            for arg in node.args:
                self.readers.setdefault(id(arg), []).append(node)
        constant = any(isinstance(node, Const) for node in nodes)
        self.largest = math.inf if constant else max(1, *ranks, 0)
        self.uses: Counter[int] = Counter()
        self.codes: dict[int, Code] = {}
        self.narrow: dict[int, Narrow] = {}
        self.fresh: set[int] = set()
        self.waiting: set[int] = set()
        self.ends: set[int] = set()
        self.given: set[int] = set()

    def shared(self, e: Expr) -> bool:
        """Is it read more than once?"""
        return self.uses[id(e)] > 1

    def fills(self, arg: Expr, code: Code, node: Expr) -> bool:
        """Is the operand an array of the node's shape, large, and no diagonal?"""
        alike = arg.shape == node.shape and node.ndim >= self.largest
        return alike and not code.core and not code.weak and id(arg) not in self.narrow

    def read_twice(self, e: Expr) -> bool:
        """Is it an array to be overwritten that is read twice?"""
        return self.uses[id(e)] == 2 and id(e) in self.fresh and id(e) not in self.ends

    def to_copy(self, root: Expr, code: Code) -> bool:
        """Has something else the memory of a result, or is it a result already?"""
        again = root.ndim > 0 and id(root) in self.given
        self.given.add(id(root))
        return again or (code.view and not self.lone(root))

    def lone(self, root: Expr) -> bool:
        """Is it a new array, or one with its axes in another order, that nothing else reads?"""
        array = root
        if isinstance(root, Einsum) and not root.summed and len(root.args) == 1:
            turned = sorted(root.out) == sorted(root.labels[0]) and len(set(root.out)) == root.ndim
            array = root.args[0] if turned and root.coef == ONE else root
        elif isinstance(root, Apply) and root.op.meaning.regroups:
            array = root.args[0]
        alone = not self.shared(root) and not self.shared(array)
        return alone and id(array) in self.fresh and array.ndim > 0

    def owned(self, arg: Expr, node: Expr) -> bool:
        """Is the operand an array of the node's shape that nothing else will read?"""
        made = id(arg) in self.fresh or (id(arg) in self.waiting and arg.ndim >= self.largest)
        if not made or arg.shape != node.shape:
            return False
        return not self.shared(arg) or self.read_last(arg, node)

    def read_last(self, arg: Expr, node: Expr) -> bool:
        """Has all else that reads the operand been written, and in statements?"""
        others = [n for n in self.readers.get(id(arg), ()) if n is not node]
        once = sum([a is arg for a in node.args]) == 1 and id(arg) not in self.ends
        name = self.codes[id(arg)].text if id(arg) in self.codes else ""
        if not once or not name.isidentifier() or any(id(n) not in self.codes for n in others):
            return False
        spend("steps", len(self.codes) // SEARCHED_A_STEP)
        named = [c.text for k, c in self.codes.items() if name in c.text and k != id(arg)]
        viewed = any(_views(name, line) for line in self.language.scope.lines)
        return not viewed and not any(re.search(rf"\b{name}\b", text) for text in named)

    def makes(self, node: Expr, code: Code) -> bool:
        """Is the value a new array with as many axes as any parameter?"""
        if node.ndim < self.largest or code.view or code.weak or code.name or selects(node):
            return code.fresh
        if isinstance(node, Einsum) and not node.summed:
            return code.level == PRODUCT and id(node) not in self.narrow
        if isinstance(node, Apply):
            return node.op.elementwise or factored(self.language, node)
        return isinstance(node, Add | Einsum)


def _views(name: str, line: str) -> bool:
    """Does a statement give a name to a part of an array, which is read by that name then?"""
    move = r"(\.T|\[[^\]]*\]|\.transpose\([^()]*\)|\.reshape\(.*\))"
    call = rf"(np\.einsum\('[^']*', {name}\)|(_window|np\.broadcast_to)\({name}, .*\))"
    return bool(re.fullmatch(rf"\s*\w+ = ({name}{move}|{call}){move}*", line))
