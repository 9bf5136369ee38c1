"""Committed rows are what the methods do today: one of every method and folder is flown (more: `make fly-again`)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from phygail.experiments.again import Old, Plan, fly_again, plan_again
from phygail.methods import METHODS

RESULTS = Path(__file__).parent.parent / "results"
FOLDERS = sorted({path.relative_to(RESULTS).parts[0] for path in RESULTS.rglob("rows.csv")})
# A share so small that one row of each method is chosen: of the middle of its settings.
SHARE, MOST_S = 1e-4, 0.15
MOST_MOVES = 10_000  # UAVs x steps: `center-fly` at N = 500 takes seconds for links and contacts, not for its rule
# Of the experiment single-failure, which has no rows yet.
NOT_YET_FLOWN = {"vcr", "ledir", "dcrmf", "rnfr", "cist", "hpc-cr", "bridge"}
WITHOUT_POLICIES = {"ablation", "case-study", "sensitivity", "transfer"}  # flown with policies that are not kept


@cache
def planned() -> Plan:
    """Reading all rows takes seconds: once."""
    plan = plan_again(RESULTS, share=SHARE, most_s=MOST_S)
    least = {top(old): moves(old) for old in sorted(plan.chosen, key=moves, reverse=True)}  # of every folder
    return replace(plan, chosen=[old for old in plan.chosen if moves(old) <= max(MOST_MOVES, least[top(old)])])


def moves(old: Old) -> int:
    return old.row["alive"] * old.row["steps"]


def top(old: Old) -> str:
    """The folder below results/."""
    return old.folder.split("/")[0]


@pytest.mark.parametrize("name", [name for name in FOLDERS if name not in WITHOUT_POLICIES])
def test_a_row_says_what_the_flight_is_today(name, here):
    """Rows of a rule that has changed since would pass every test of tables, figures and versions.

    Nothing is forgiven but timings and the rounding of distances and speeds.
    """
    pairs = fly_again([old for old in planned().chosen if top(old) == name], here)
    changed = [(p.old.folder, p.new["scenario"], p.new["method"], p.differing) for p in pairs if p.differing]
    assert changed == []


def test_rows_of_all_methods_but_the_slowest_are_flown_again():
    chosen = planned().chosen
    assert len(chosen) >= 100
    assert (
        set(METHODS) - {old.row["method"] for old in chosen}
        <= {"demd", "gdr-ts", "cr-mgc", "phygail-plus"} | NOT_YET_FLOWN
    )


@pytest.mark.parametrize("name", sorted(WITHOUT_POLICIES))
def test_rows_of_policies_that_are_not_kept_are_counted_not_flown(name):
    assert not [old for old in planned().chosen if top(old) == name]
    reasons = {reason for folder, reason in planned().left_out if folder.split("/")[0] == name}
    assert reasons == {"its policy is not in the tree"}
