"""Term rewriting: rules are equalities, the strategy is where and how often they are tried.

A rule's two sides are expressions of scalar wildcards, so each rule can be printed and tested by
sampling both sides. The strategy visits operands before consumers and repeats until nothing fires.

Where they hold is one rule for all. An equality of polynomials or of analytic functions, such as
0 x = 0 in the normal form or sin^2 + cos^2 = 1, is one of finite numbers: it may give a number
where arithmetic on infinity or nan has none, and derivatives depend on that. An equality whose one
side has no value where the other has one, such as exp(log(x)) = x at -2, is used only where facts
prove that the operands are inside. Between overflow and the right number, a rule takes the number.
Each row says its part: `Rule.domain`, `given` and `finite`; rows of matrices hold where the
factorisation that they cancel exists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import lru_cache, reduce
from inspect import signature
from itertools import combinations, permutations
from operator import or_

from ..graph.applications import rewritten, root_bit, root_of, roots_below
from ..graph.extents import ONE, number
from ..graph.nodes import Add, Apply, Einsum, Expr, Var, postorder
from ..graph.normal import einsum, scale
from ..graph.products import is_number
from ..graph.variables import var
from ..support.given import no_expression
from ..support.limits import spend
from ..support.records import record

Bindings = dict[int, Expr]
RuleSide = Callable[..., Expr]

MAX_PASSES = 20
MAX_FACTORS = 8
#: Steps that an operand takes, of nodes with more than a few.
OPERAND, FEW = 10, 8


@record(frozen=True)
class Rule:
    """One equality, used from left to right.

    Attributes
    ----------
    name, group : str
        What reports call the rule and its kind.
    left, right : callable
        Both sides as functions of expressions; the left one, called with scalar wildcards, is the
        pattern unless `match` is given.
    domain : (low, high)
        Where the sides agree, for every wildcard.
    given : callable, optional
        What facts have to prove of every wildcard, ``given(e)``: the left side has no value
        elsewhere, and the right one has.
    finite : bool
        Do the sides agree for finite numbers only, as those of ``0 * x = 0`` do?
    match : callable, optional
        ``match(node)`` gives the replacement or None, for patterns over whole axes.
    shape : tuple
        Shape of the wildcards when the rule is sampled.
    heads : set of str
        Operators or kinds that factors of a pattern are, or terms: of a node too, or the rule is
        not tried.
    needs : sequence of sequence of str
        Operators or kinds, of each of which one is at or below every node on which the rule fires.
        Those of a pattern are found.
    """

    name: str
    group: str
    left: RuleSide
    right: RuleSide
    domain: tuple[float, float] = (float("-inf"), float("inf"))
    match: Callable[[Expr], Expr | None] | None = None
    shape: tuple[int, ...] = ()
    given: Callable[[Expr], bool] | None = None
    finite: bool = False
    needs: Sequence[Sequence[str]] = ()
    wildcards: list[Var] = field(default_factory=list, compare=False)
    pattern: list[Expr] = field(default_factory=list, compare=False)
    heads: set[str] = field(default_factory=set, compare=False)
    bits: list[int] = field(default_factory=list, compare=False)

    def __post_init__(self) -> None:
        self.bits.extend(reduce(or_, map(root_bit, names)) for names in self.needs)

    def sides(self, *values: Expr) -> tuple[Expr, Expr]:
        return self.left(*values), self.right(*values)

    def arity(self) -> int:
        return len(signature(self.left).parameters)

    def prepared(self) -> Expr:
        """The pattern, which is the left side at wildcards, made when first needed."""
        if not self.pattern:
            self.wildcards.extend(var(f"wildcard{k}") for k in range(self.arity()))
            self.pattern.append(self.left(*self.wildcards))
            factors = self.pattern[0].args if isinstance(self.pattern[0], Einsum) else ()
            if self.match is None and len(factors) > 1:
                assert all(isinstance(factor, Apply) for factor in factors)
                self.heads.update(map(root_of, factors))
            if self.match is None and isinstance(self.pattern[0], Add):
                # A product of one factor also stands for a multiple of what is none.
                several = [t for t in self.pattern[0].args if len(t.args) != 1]
                whole = [t for t in self.pattern[0].args if isinstance(t, Apply)]
                self.heads.update([root_of(t) for t in several + whole if not isinstance(t, Var)])
            if self.match is None:
                rows = [e for e in postorder(self.pattern) if isinstance(e, Apply)]
                self.bits.extend({root_bit(root_of(e)) for e in rows})
        return self.pattern[0]

    def root(self) -> str:
        """The operator or node kind at the root of the pattern; others never match."""
        return root_of(self.prepared())

    def fits(self, below: int) -> bool:
        """Is all that it needs among what is at or below a node, by `roots_below`?"""
        return all(map(below.__and__, self.bits))

    def try_on(self, node: Expr) -> Expr | None:
        if self.match is not None:
            return self.match(node)
        pattern = self.prepared()
        if isinstance(pattern, Einsum) and len(pattern.args) > 1:
            return self._in_product(pattern, node)
        for found in unify(pattern, node, {}):
            if self._holds(found):
                return self._replacement(found)
        return None

    def _holds(self, found: Bindings) -> bool:
        return self.given is None or all(map(self.given, found.values()))

    def _replacement(self, found: Bindings) -> Expr:
        return self.right(*[found[id(w)] for w in self.wildcards])

    def _in_product(self, pattern: Einsum, node: Expr) -> Expr | None:
        """The product with matching factors, under the same labels, replaced; None without such."""
        assert isinstance(node, Einsum)
        fitting = [k for k, arg in enumerate(node.args) if root_of(arg) in self.heads]
        if not len(pattern.args) <= len(fitting) <= MAX_FACTORS:
            return None
        for chosen in combinations(fitting, len(pattern.args)):
            word = node.labels[chosen[0]]
            if any(node.labels[k] != word for k in chosen):
                continue
            factors = [node.args[k] for k in chosen]
            for found in filter(self._holds, _assign(list(pattern.args), factors, {})):
                rest = [k for k in range(len(node.args)) if k not in chosen]
                ops = [node.args[k] for k in rest] + [self._replacement(found)]
                words = [node.labels[k] for k in rest] + [word]
                extents = dict(enumerate(node.extents))
                coef = node.coef.by(number(1 / pattern.coef.value))
                return einsum(ops, words, node.out, coef, extents)
        return None


def unify(pattern: Expr, node: Expr, found: Bindings) -> Iterator[Bindings]:
    """All bindings of wildcards that make the pattern, applied entrywise, the node."""
    if isinstance(pattern, Var):
        if id(pattern) not in found:
            yield {**found, id(pattern): node}
        elif found[id(pattern)] is node:
            yield found
    elif isinstance(pattern, Apply):
        if isinstance(node, Apply) and node.op is pattern.op and node.params == pattern.params:
            yield from _assign_in_order(pattern.args, node.args, found)
    elif isinstance(pattern, Add):
        if isinstance(node, Add) and len(node.args) == len(pattern.args):
            yield from _assign(list(pattern.args), list(node.args), found)
    elif isinstance(pattern, Einsum) and not pattern.args:
        if is_number(node) and isinstance(node, Einsum) and node.coef.key() == pattern.coef.key():
            yield found
    elif isinstance(pattern, Einsum) and len(pattern.args) == 1:
        coef = node.coef if isinstance(node, Einsum) else ONE
        if not isinstance(pattern.args[0], Var) and coef != pattern.coef:
            return
        yield from unify(pattern.args[0], scale(node, number(1 / pattern.coef.value)), found)
    elif isinstance(pattern, Einsum) and isinstance(node, Einsum) and not node.summed:
        whole = all(word == node.out for word in node.labels)
        if whole and len(node.args) == len(pattern.args) and node.coef == pattern.coef:
            yield from _assign(list(pattern.args), list(node.args), found)


def _assign_in_order(
    patterns: Sequence[Expr], nodes: Sequence[Expr], found: Bindings
) -> Iterator[Bindings]:
    if not patterns:
        yield found
        return
    for more in unify(patterns[0], nodes[0], found):
        yield from _assign_in_order(patterns[1:], nodes[1:], more)


def _assign(patterns: list[Expr], nodes: list[Expr], found: Bindings) -> Iterator[Bindings]:
    """Patterns matched to nodes in any order, wildcards last."""
    ordered = sorted(patterns, key=lambda p: isinstance(p, Var))
    for order in permutations(nodes):
        yield from _assign_in_order(ordered, order, found)


#: All rules by the operator or node kind that they are tried on.
RULES_BY_ROOT: dict[str, list[Rule]] = {}
ALL_RULES: list[Rule] = []


def rule(
    name: str,
    group: str,
    left: RuleSide,
    right: RuleSide,
    root: str = "",
    match: Callable[[Expr], Expr | None] | None = None,
    domain: tuple[float, float] = (float("-inf"), float("inf")),
    shape: tuple[int, ...] = (),
    given: Callable[[Expr], bool] | None = None,
    finite: bool = False,
    needs: Sequence[Sequence[str]] = (),
) -> Rule:
    """Register a rule; `root` is needed where `match` takes the place of a pattern."""
    made = Rule(name, group, left, right, domain, match, shape, given, finite, needs)
    ALL_RULES.append(made)
    RULES_BY_ROOT.setdefault(root or made.root(), []).append(made)
    return made


def simplify(e: Expr, fired: Counter[str] | None = None) -> Expr:
    """The expression after all rules, operands first, until none fires.

    Parameters
    ----------
    e : Expr
    fired : Counter, optional
        Counts the rules that fired, by name.

    Returns
    -------
    Expr
        Equal where both are finite; of the same shape.

    Raises
    ------
    TypeError
        Where `e` is not one expression.
    """
    if not isinstance(e, Expr):
        raise TypeError(f"one expression is simplified at a time, not {no_expression(e)}")
    return simplified([e], fired)[0]


def simplified(roots: Sequence[Expr], fired: Counter[str] | None = None) -> list[Expr]:
    """Several expressions after all rules; shared nodes are rewritten once (see `simplify`).

    A root remembers what it became, for who need not know which rules fired.
    """
    rules = len(ALL_RULES)
    found = list(roots) if fired is not None else [_known(root, rules) for root in roots]
    counts: Counter[str] = Counter() if fired is None else fired
    settled: dict[int, Expr] = {}
    for _ in range(MAX_PASSES):
        before = sum(counts.values())
        found = _one_pass(found, counts, settled)
        if sum(counts.values()) == before:
            for root, new in zip(roots, found, strict=True):
                if new is not root:
                    root._simple = rules, new
            break
    return found


def _known(root: Expr, rules: int) -> Expr:
    """What these rules made of an expression before, itself where nobody asked."""
    return root if root._simple is None or root._simple[0] != rules else root._simple[1]


def _one_pass(roots: Sequence[Expr], counts: Counter[str], settled: dict[int, Expr]) -> list[Expr]:
    """Rules tried on every node once, but for those on which none fires, which are `settled`.

    A node remembers that none fires on it or below: facts are of variables, which do not change.
    """
    rules = len(ALL_RULES)

    def change(new: Expr, old: Expr) -> Expr:
        if new._settled == rules:
            return new
        if id(new) not in settled:
            found = fire(new)
            if found is not None:
                return found
            settled[id(new)] = new
        if all(arg._settled == rules for arg in new.args):
            new._settled = rules
        return new

    def fire(new: Expr) -> Expr | None:
        if len(new.args) > FEW:
            spend("steps", OPERAND * len(new.args))
        looks = root_of(new), frozenset(map(root_of, new.args)), roots_below(new)
        for candidate in _candidates(rules, *looks):
            found = candidate.try_on(new)
            if found is not None and found is not new:
                counts[candidate.name] += 1
                return found
        return None

    return rewritten(roots, change, lambda node: node._settled == rules)


@lru_cache(maxsize=1024)
def _candidates(rules: int, root: str, heads: frozenset[str], below: int) -> Sequence[Rule]:
    """Of so many rules those for nodes that look so: many nodes of one expression do."""
    found = RULES_BY_ROOT.get(root, ())
    return [rule for rule in found if heads.issuperset(rule.heads) and rule.fits(below)]


def substitute(e: Expr, values: dict[Var, Expr]) -> Expr:
    """All variables replaced at once."""
    by_id = {id(v): value for v, value in values.items()}
    return rewritten([e], lambda new, old: by_id.get(id(old), new))[0]
