"""Whether a row can be of a run: what follows from its case and from the settings is worked out and compared.

A row that somebody changed by hand would otherwise stay in the results for good. Columns of the flight itself (steps
of a success, distance, contacts) can only be checked by flying again; here they are held to their limits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phygail.evaluation.flight import Case, Job, case_row, make_case, time_of
from phygail.evaluation.grid import Grid
from phygail.evaluation.rows import Row
from phygail.swarm.damage import damage_count

MOST_DRAWN = 20  # cases whose subnets and bound are worked out again: about 20 ms each
# Columns that the flight decides; `case_row` knows all others before it.
_FLOWN = ("converged", "steps", "time_s", "contact_events_per_uav", "contact_rate_raw", "contact_rate_capped",
          "distance_m_per_uav", "max_speed_mps", "first_action_ms", "solve_s", "flag", "version")  # fmt: skip

Judge = Callable[[Row], str]  # what is wrong with a row; empty if nothing is


def make_judge(job: Job) -> Judge:
    """A judge of the rows of a job; those of other cases and methods pass.

    Of a grid the first `MOST_DRAWN` cases that it sees are drawn again, of the others it checks what their id says.
    """
    numbers = {name: number for number, name in enumerate(job.cases.ids())}
    cases: dict[int, Case] = {}

    def judge(row: Row) -> str:
        number = numbers.get(row["scenario"])
        if number is None or row["method"] not in job.methods:
            return ""
        if number not in cases and len(cases) < MOST_DRAWN:
            cases[number] = make_case(job.cases.scenario(number))
        case = cases.get(number)
        expected = _cell_facts(job, number) if case is None else _facts(case, row["method"], job)
        return _difference(row, expected) or _beyond(row) or ("" if case is None else _unlike_budget(row, case))

    return judge


def _facts(case: Case, method: str, job: Job) -> dict[str, Any]:
    """All that is known of a row before its flight."""
    known = case_row(case, method, safety=job.safety, policy=job.policy, sensing=job.sensing)
    return {name: value for name, value in known.items() if name not in _FLOWN}


def _cell_facts(job: Job, number: int) -> dict[str, Any]:
    """What is known of a case without drawing it."""
    if isinstance(job.cases, Grid):
        uavs, ratio, _ = job.cases.cell(number)
        damaged, drawn = damage_count(uavs, ratio), {"seed": job.cases.seed}
    else:
        scenario = job.cases.scenario(number)
        uavs, damaged, drawn = scenario.uavs, len(scenario.damaged), {}
    settings = {"safety": "on" if job.safety else "off"}
    return {"uavs": uavs, "damaged": damaged, "alive": uavs - damaged, **drawn, **settings}


def _difference(row: Row, expected: dict[str, Any]) -> str:
    for name, value in expected.items():
        if row[name] != value:
            return f"{name} is {row[name]}, its case says {value}"
    return ""


def _beyond(row: Row) -> str:
    """Limits that hold for every flight."""
    if row["converged"] not in (0, 1):
        return f"converged is {row['converged']}, it can be 0 or 1"
    if row["steps"] is None or row["steps"] < (row["bound_steps"] or 0):
        return f"steps is {row['steps']}, less than the bound of {row['bound_steps']}"
    return ""


def _unlike_budget(row: Row, case: Case) -> str:
    """What the budget and the length of a step say about a row."""
    budget = case.scenario.budget_steps
    if row["steps"] > budget or (not row["converged"] and row["steps"] != budget):
        return f"steps is {row['steps']}, its case has a budget of {budget}"
    time_s = time_of(row["steps"], case.scenario)
    return "" if row["time_s"] == time_s else f"time_s is {row['time_s']}, {row['steps']} steps take {time_s}"
