"""One episode of a comparison: from a task to its row."""

from __future__ import annotations

import functools
import importlib
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from phygail import __version__
from phygail.experiments.failures import Failures, measures
from phygail.experiments.grid import Cases
from phygail.experiments.rows import CURVE, ERROR, MEASURED, Row
from phygail.methods.base import (
    METHODS,
    Method,
    checked_flag,
    explained,
    load_methods,
    make_method,
    named_faults,
    nonfinite_fault,
    takes_policy,
)
from phygail.methods.controller import fly_case, policy_option
from phygail.sensing.imperfect import Sensing
from phygail.swarm.scenario import Scenario
from phygail.swarm.simulator import Episode, initial_state
from phygail.swarm.tree import bound_for

TIMEOUT = "timeout"  # flag of an episode that took longer than it may
SPARED = "spared"  # flag of an episode in which an event would have left fewer than two
NONFINITE = "nonfinite"  # flag of an episode with commands that are no numbers; the world took them as zero
_DECIMALS = 9  # of times: 137 steps of 0.1 s are 13.7 s, not 13.700000000000001 s
_CACHED = 8  # drawn scenarios a worker remembers: drawing one can cost more than flying it


@dataclass(frozen=True)
class Job:
    """What every worker of a comparison knows.

    Attributes:
        cases: The scenarios; workers draw those of a grid themselves.
        methods: Names.
        safety: Whether every command is filtered.
        timeout_s: Wall time per episode, if limited.
        policy: Policy file for the methods that take one.
        files: Python files that register methods. modules: Modules that do.
        sensing: How imperfectly every method sees.
    """

    cases: Cases
    methods: tuple[str, ...]
    safety: bool = False
    timeout_s: float | None = None
    policy: Path | None = None
    files: tuple[Path, ...] = ()
    modules: tuple[str, ...] = ()
    sensing: Sensing = field(default_factory=Sensing)

    @property
    def measured(self) -> bool:
        """Whether rows hold what failures of single UAVs are judged by."""
        return isinstance(self.cases, Failures)


@dataclass(frozen=True)
class Task:
    """One episode.

    Attributes:
        index: Number of the scenario.
        method: Name.
        flag: Set when the episode was given up (its worker hung or died): the flag of its row; nothing is flown.
    """

    index: int
    method: str
    flag: str = ""


@dataclass(frozen=True)
class Result:
    """A finished row, and what went wrong: all of it for the error log, and in one line."""

    task: Task
    row: Row
    details: str = ""
    cause: str = ""


@dataclass(frozen=True)
class Case:
    """A scenario with what all methods share."""

    scenario: Scenario
    subnets: int
    bound: int | None


def make_case(scenario: Scenario) -> Case:
    """Count the subnets and work out the bound."""
    subnets = initial_state(scenario).links.count
    return Case(scenario, subnets, bound_for(scenario))


def prepare(job: Job) -> None:
    """Import what the job needs and make each method once, so that a missing extra or a bad policy shows at once."""
    load_methods(job.files)
    for module in job.modules:
        importlib.import_module(module)
    for name in job.methods:
        with named_faults(METHODS.get(name)):
            make_method(name, **policy_option(name, job.policy))


def case_reader(job: Job) -> Callable[[int], Case]:
    """A function that makes cases by number and remembers the last few."""
    return functools.lru_cache(maxsize=_CACHED)(lambda index: make_case(job.cases.scenario(index)))


def fly_task(job: Job, task: Task, read_case: Callable[[int], Case]) -> Result:
    """The row of one episode. Whatever a method raises becomes a failed row, never a lost one."""
    case = read_case(task.index)
    facts = case_row(case, task.method, safety=job.safety, policy=job.policy, sensing=job.sensing)
    if job.measured:
        facts |= dict.fromkeys(MEASURED)
    if task.flag:
        given_up = f"given up: {task.flag}"
        return Result(task, facts | {"flag": task.flag}, given_up, given_up)
    try:
        episode, method = fly_case(
            case.scenario, task.method, safety=job.safety, policy=job.policy, timeout_s=job.timeout_s,
            sensing=job.sensing, record=job.measured,
        )  # fmt: skip
        cause = nonfinite_fault(method) if episode.nonfinite else ""
        row = facts | episode_row(episode, method) | (measures(episode, method) if job.measured else {})
        return Result(task, row, cause, cause)
    except BaseException as error:  # a method from outside may raise anything, also what would end this worker
        flag, cause = f"{ERROR}{type(error).__name__}", explained(error, METHODS.get(task.method))
        return Result(task, facts | {"flag": flag}, traceback.format_exc(), cause)


def case_row(case: Case, name: str, *, safety: bool, policy: Path | None, sensing: Sensing | None = None) -> Row:
    """What is known before the flight; the outcome is filled in as the failure that an error would be."""
    scenario, sensing = case.scenario, sensing or Sensing()
    budget = scenario.budget_steps
    return {
        "scenario": scenario.id,
        "method": name,
        "uavs": scenario.uavs,
        "damaged": len(scenario.damaged),
        "alive": len(scenario.alive),
        "subnets": case.subnets,
        "converged": 0,
        "steps": budget,
        "time_s": time_of(budget, scenario),
        "bound_steps": case.bound,
        "contact_events_per_uav": None,
        "contact_rate_raw": None,
        "contact_rate_capped": None,
        "distance_m_per_uav": None,
        "max_speed_mps": None,
        "first_action_ms": None,
        "solve_s": None,
        "seed": scenario.seed,
        "safety": "on" if safety else "off",
        "variant": policy.stem if policy is not None and takes_policy(name) else "",
        "flag": "",
        "version": __version__,
        "noise_m": float(sensing.sigma_m),
        "delay_steps": sensing.delay_steps,
        "bias_m": float(sensing.bias_m),
        "world": "" if scenario.world.plain else scenario.world.label(),
        **dict.fromkeys(CURVE),
    }


def time_of(steps: int, scenario: Scenario) -> float:
    """So many steps in seconds."""
    return round(steps * scenario.physics.step_s, _DECIMALS)


def episode_row(episode: Episode, method: Method) -> Row:
    """The cells that the flight decides."""
    metrics, scenario = episode.metrics, episode.scenario
    timed_out = not episode.terminated and episode.steps < scenario.budget_steps
    flags = [checked_flag(method), NONFINITE if episode.nonfinite else "", TIMEOUT if timed_out else "",
             SPARED if episode.spared else ""]  # fmt: skip
    return {
        "converged": int(episode.terminated),
        "steps": episode.scored_steps,
        "time_s": time_of(episode.scored_steps, scenario),
        "contact_events_per_uav": metrics.contact_events_per_uav,
        "contact_rate_raw": metrics.contact_rate_raw,
        "contact_rate_capped": metrics.contact_rate_capped,
        "distance_m_per_uav": metrics.distance_m_per_uav,
        "max_speed_mps": metrics.max_speed_mps,
        "first_action_ms": round(episode.first_action_s * 1e3, 4),
        "solve_s": round(episode.solve_s, 6),
        "flag": ";".join(filter(None, flags)),
        **{name: getattr(metrics, name) for name in CURVE},
    }
