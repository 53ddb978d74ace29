"""What is computed of roots at given extents, and by which plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import chain

from ..backends.interface import BackEnd
from ..calculus.respelling import respelled
from ..graph.nodes import Derivative, Expr, dimensions, postorder, variables
from ..plan.lowering.candidates import chosen, enough, plan_as_spelled
from ..plan.lowering.make import make_plan
from ..plan.lowering.memo import Known
from ..plan.schedule.memory import allowed, check_fits
from ..plan.steps import Plan
from ..rules.presumed import PRESUMES, presumed_definite
from .limits import within
from .roots import first_of, values_of

#: About the seconds that finding the best plan takes for each node, and how many of them in all a
#: second call may take.
SEARCH, AT_ONCE = 1e-3, 0.05
Sizes = Mapping[str, int]
Roots = Sequence[Expr]


class Plans:
    """Plans of expressions that read some variables, for a back end within a limit of memory.

    Parameters
    ----------
    backend : BackEnd
    limit : int or None
        Bytes that a call may take.
    lent, ordered : bool
        As `make_plan` has them.
    read : collection of str
        The variables that calls give.
    """

    def __init__(
        self,
        backend: BackEnd,
        limit: int | None,
        lent: bool,
        ordered: bool,
        read: Collection[str],
    ) -> None:
        self.backend, self.limit, self.lent, self.ordered = backend, limit, lent, ordered
        self.names = set(read)
        #: Variables whose data are bound once.
        self.fixed: Collection[str] = ()

    def of_one_call(self, roots: Roots, sizes: Sizes, known: Known, itemsize: int) -> Plan | None:
        """A plan of values as they were found first; None where finding the best is worth it."""
        if not any(isinstance(root, Derivative) for root in roots):
            return None
        several = _several(roots)
        given = sizes, itemsize, self.fixed, self.lent, self.ordered, self.backend.machine
        plan = plan_as_spelled(list(map(first_of, roots)), *given, known, several)
        most = self._most()
        return None if most is not None and plan is not None and plan.peak_bytes > most else plan

    def patience(self, roots: Roots) -> float:
        """Seconds that calls may take by a plan of one call until the best one is worth finding.

        As many as that takes, so that all together take at most twice as long as if it were known
        beforehand how many calls there are.
        """
        search = SEARCH * len(postorder(list(map(first_of, roots))))
        return search if search > AT_ONCE else 0.0

    def chosen(self, roots: Roots, sizes: Sizes, known: Known | None = None) -> list[Expr]:
        """The values of the roots; of a derivative's candidates the cheapest at these sizes."""

        def usable(*values: Expr) -> bool:
            return self._readable(values) and sizes.keys() >= set(dimensions(values))

        found = list(map(first_of, roots))
        given = sizes, self.backend.machine, known
        if usable(*found) and (not _several(roots) or enough(found, *given)):
            return found
        options = list(map(values_of, roots))
        if not usable(*chain.from_iterable(options)):
            pairs = zip(options, roots, strict=True)
            options = [list(filter(usable, values)) or [first_of(r)] for values, r in pairs]
        first = [values[0] for values in options]
        complete = sizes.keys() >= set(dimensions(first))  # else others say what is missing
        return chosen(options, *given) if complete else first

    def options(self, roots: Roots, sizes: Sizes) -> list[list[Expr]]:
        """What may be computed for the roots: the cheapest at these sizes, then other ways."""
        values = list(map(values_of, roots))
        most = max([len(ways) for ways in values], default=0)
        others = [[ways[min(k, len(ways) - 1)] for ways in values] for k in range(most)]
        return [self.chosen(roots, sizes), *others]

    def best(
        self,
        roots: Roots,
        values: Roots,
        sizes: Sizes,
        known: Known,
        itemsize: int = 8,
        note: str = "",
        sparse: Sizes | None = None,
        presuming: bool = True,
    ) -> tuple[Plan, bool]:
        """The best plan of values of the roots, and whether it presumes what it may not do.

        That is what factorisations in it find out.
        """

        def other(checkpoints: bool = False) -> list[Expr] | None:
            found = self._respelled(roots, sizes, known, checkpoints)
            return presumed_definite(found, sizes) if found and presumes else found

        presumes, values = False, list(values)
        if presuming and self.backend.refuses and not sparse:
            values, before = presumed_definite(values, sizes), values
            presumes = any(a is not b for a, b in zip(values, before, strict=True))
            note = "; ".join([text for text in (note, PRESUMES) if text]) if presumes else note
        given = self.fixed, True, self.lent, self.backend.machine, sparse
        planned = partial(make_plan, ordered=self.ordered)
        plan = planned(values, sizes, itemsize, note, *given, other, known=known)
        plan = within(
            plan,
            self._most(),
            partial(other, True),
            lambda saving: planned(saving, sizes, itemsize, note, *given),
        )
        return plan, presumes

    def check_fits(self, plan: Plan) -> None:
        """Refuse a plan that takes more memory than there is."""
        check_fits(plan, self.limit, self._memory())

    def _respelled(
        self, roots: Roots, sizes: Sizes, known: Known, checkpoints: bool
    ) -> list[Expr] | None:
        """The values of the roots by derivatives of functions that are spelled otherwise."""
        choose = partial(chosen, sizes=sizes, machine=self.backend.machine, known=known)
        found = respelled(roots, sizes, choose, checkpoints)
        return found if self._readable(found or []) else None

    def _readable(self, values: Roots) -> bool:
        return self.names >= variables(values).keys()

    def _most(self) -> int | None:
        return allowed(self.limit, self._memory())

    def _memory(self) -> int | None:
        """Bytes that there are where it runs; None for what this process may have."""
        return self.backend.machine.memory or self.backend.memory()


def _several(roots: Roots) -> bool:
    """Is one of the roots a derivative that may be found in several ways?"""
    return any(isinstance(root, Derivative) and root.ways for root in roots)
