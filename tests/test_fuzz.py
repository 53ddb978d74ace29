"""Random programs through every back end but C, every printer and language."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fuzz import (
    CHECKS,
    PIECE,
    TOGETHER,
    Draw,
    Log,
    Mismatch,
    Work,
    case,
    compared,
    main,
    piece,
    still_differs,
    tier,
    together,
)
from tests.random_corpus import CORPUS
from tests.random_programs import FAMILIES, Program, drawn, shrunk


@pytest.mark.parametrize("first", [0, 1_000_000, 1_000_300])
def test_random_programs_agree_with_jets_everywhere(first: int) -> None:
    compared, seeds, mismatches = piece(Work(first, 22, without=TOGETHER))
    assert compared >= 18
    assert seeds.keys() == CHECKS.keys()
    assert {len(some) for some in seeds.values()} == {compared}
    assert not mismatches, "\n".join(map(str, mismatches))


@pytest.mark.parametrize("first", range(2_000_100, 2_000_500, 100))
def test_many_random_programs_agree_with_jets_in_every_plan(first: int) -> None:
    """No piece of these is one in forty, which all checks are made of."""
    compared, seeds, mismatches = piece(Work(first, 100, every=40))
    assert compared >= 85
    assert len(seeds["planned three ways"]) == compared
    assert not mismatches, "\n".join(map(str, mismatches))


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_programs_with_more_steps_of_a_family_agree_too(family: str, zeros: bool) -> None:
    compared, _, mismatches = piece(Work(0, 6, TOGETHER, Draw((family,), zeros)))
    assert compared >= 5
    assert not mismatches, "\n".join(map(str, mismatches))


@pytest.mark.parametrize("first", range(2000, 2400, 100))
def test_matrices_with_zeros_may_be_sparse_data(first: int) -> None:
    """Rows that were taken of one, 2041 and 2082, and one without rows, 2055, failed once."""
    cases = [case(seed, draw=Draw(zeros=True)) for seed in range(first, first + 100)]
    found = [m for one in cases if one is not None for m in compared(one, "sparse")]
    assert not found, "\n".join(map(str, found))


# --- programs that are compared in part -----------------------------------------------------------


def test_one_piece_of_so_many_is_compared_everywhere() -> None:
    everywhere = {*CHECKS, *TOGETHER}
    seeds = range(400 * PIECE)
    full = {seed // PIECE for seed in seeds if set(tier(seed, 40).checks) == everywhere}
    assert full == set(range(0, 400, 40))
    assert all(set(tier(seed, 1).checks) == everywhere for seed in seeds)


def test_the_others_are_planned_and_every_check_and_order_is_drawn_for_some() -> None:
    drawn_for = [tier(seed, 40) for seed in range(PIECE, 40 * PIECE)]
    assert all("planned three ways" in t.checks and len(t.checks) == 2 for t in drawn_for)
    assert {where for t in drawn_for for where in t.checks} == {*CHECKS}
    assert {t.orders for t in drawn_for} == {(0, 1), (0, 2)}


def test_outputs_of_a_part_are_those_of_the_whole() -> None:
    """The smallest program is looked for among whole ones."""
    for seed in range(PIECE, PIECE + 8):
        whole, part = case(seed), case(seed, orders=tier(seed, 40).orders)
        assert whole is not None
        assert part is not None
        assert len(part.outputs) == 2
        assert {o.what: o.expression for o in part.outputs}.items() <= {
            o.what: o.expression for o in whole.outputs
        }.items()


def test_a_log_tells_where_each_seed_was_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = piece(Work(PIECE, 6, every=40))
    assert done.seeds["planned three ways"] == list(range(PIECE, PIECE + 6))
    others = [where for where in done.seeds if where != "planned three ways"]
    assert (
        sorted(seed for where in others for seed in done.seeds[where])
        == (done.seeds["planned three ways"])
    )
    options = {"every": 40, "without": [], "draw": [[], False]}
    wrong = done._replace(mismatches=[Mismatch(PIECE + 1, "numpy", "told before")])
    Log(tmp_path / "log", options).write(PIECE, wrong)
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert json.loads(line)["seeds"] == done.seeds
    assert Log(tmp_path / "log", {**options, "every": 1}).done == {}
    # What stands there is not run again, and what was wrong stays wrong.
    asked = ["--seed", str(PIECE), "--count", "6", "--every", "40", "--log", str(tmp_path / "log")]
    assert main(asked) == 1
    assert "6 programs, 1 mismatches" in capsys.readouterr().out
    assert len((tmp_path / "log").read_text().splitlines()) == 1


def test_what_differs_is_made_small() -> None:
    """A row that is taken for a fault stands alone in the end, with what it reads."""
    seed = next(s for s in range(1000) if len(drawn(s).program.steps) == 8)
    fault = drawn(seed).program.steps[4]
    has = lambda p: any(step[0] == fault[0] for step in p.steps)  # noqa: E731
    found = shrunk(seed, has)
    assert has(found)
    assert len(found.steps) < 4
    fine = still_differs(Mismatch(seed, "numpy", ""), Draw())
    assert not fine(drawn(seed).program)


@pytest.mark.parametrize(("seed", "program"), CORPUS)
def test_programs_that_failed_once_agree_everywhere(seed: int, program: Program) -> None:
    found = case(seed, program)
    assert found is not None
    assert not [wrong for where in CHECKS for wrong in compared(found, where)]


@pytest.mark.parametrize("seed", [958000263])
def test_loops_that_read_integers_as_numbers_too(seed: int) -> None:
    found = case(seed, draw=Draw(("loops",)))
    assert found is not None
    assert not together([found], "printed c")


@pytest.mark.parametrize("seed", [973000313, 973002312])
def test_loops_that_scan_the_diagonals_of_what_is_symmetric(seed: int) -> None:
    found = case(seed, draw=Draw(("loops",)))
    assert found is not None
    assert not compared(found, "planned three ways")
    assert not compared(found, "batched")


@pytest.mark.parametrize("seed", [983001623, 983008775])
def test_sums_of_what_is_shifted_under_units_and_picked(seed: int) -> None:
    found = case(seed)
    assert found is not None
    assert not compared(found, "planned three ways")
    assert not compared(found, "matrix text")


@pytest.mark.parametrize("seed", [40020152, 40020603, 40020648, 40021011, 40103745, 40104104])
def test_sums_of_units_and_of_what_stands_among_zeros(seed: int) -> None:
    """Both wait for the sum that they are added in, in which only one of them has a place."""
    found = case(seed)
    assert found is not None
    assert not compared(found, "source")


@pytest.mark.parametrize("seed", [53001255, 54001290, 54001924])
def test_entries_of_the_first_row_are_no_rows(seed: int) -> None:
    """Printed C does not write their index 0: loops over later axes run as if over the first."""
    found = case(seed)
    assert found is not None
    assert not together([found], "printed c")


@pytest.mark.parametrize("seed", [989201820])
def test_sums_of_rows_of_matrices_of_other_widths(seed: int) -> None:
    found = case(seed)
    assert found is not None
    assert not compared(found, "matrix text")
