"""Experiments beyond the paper, as data."""

from __future__ import annotations

from phygail.evaluation.experiment import Experiment, Leg
from phygail.evaluation.paper import (
    CHEAP,
    FAST,
    FEW,
    FEWER,
    FEWER_OF_POLICY,
    LARGE,
    LARGE_SWARMS,
    PAPER,
    PAPER_POLICY,
    PLANNERS,
    POLICY_REMARK,
    SIZES,
    THREE,
    both,
)
from phygail.registry import Registry

RULES = ("phygail", "reach", "sidr")  # decentralized and cheap enough for 10,000 UAVs
FOUR = (0.25, 0.5, 0.75, 0.9)
FIVE = (0.1, 0.3, 0.5, 0.7, 0.9)  # a coarser 0.05 to 0.95, with the same mean
CLASSIC = ("vcr", "ledir", "dcrmf", "rnfr", "cist", "hpc-cr")  # of the paper's Table I, for single failures
FEW_MOVE = (*CLASSIC, "bridge", "hero", "sidr", "reach", "phygail", "convex")
FAILING = (20, 50, 100, 200, 250)  # swarm sizes; Table I's largest is 250
HUGE = (1000, 2000, 5000, 10_000)

BEYOND: Registry[Experiment] = Registry("experiment")


def _add(experiment: Experiment) -> None:
    BEYOND.add(experiment.name, experiment)


_add(
    Experiment(
        "optimality",
        "Recovery time over the lower bound",
        "How far is each method from what geometry allows?",
        PAPER.get("overall").legs,
        tables=("over-bound",),
        figures=("over-bound",),
        flights_of="overall",
        remarks=("Sum of steps over sum of lower bounds within each setting, failures with their whole budget.", FEWER),
    )
)
_add(
    Experiment(
        "safety",
        "Every method with and without the safety filter",
        "What does it cost to make new contacts impossible?",
        (
            Leg("fast-off", FAST, LARGE, FOUR, 20, LARGE_SWARMS),
            Leg("fast-on", FAST, LARGE, FOUR, 20, LARGE_SWARMS, safety=True),
            Leg("planners-off", PLANNERS, LARGE, FOUR, 10, FEW),
            Leg("planners-on", PLANNERS, LARGE, FOUR, 10, FEW, safety=True),
        ),
        tables=("safety",),
        remarks=(
            "The same cases with and without the filter; contacts that already exist at the start are no events.",
        ),
    )
)
_add(
    Experiment(
        "scale",
        "Swarms of 1,000 to 10,000 UAVs",
        "Does it still work, how far from the bound, and does the cost per UAV stay constant?",
        (
            Leg("fast", RULES, HUGE, THREE, 5, {5000: 2, 10_000: 1}),
            Leg("crowd", ("center-fly",), HUGE[:-1], THREE, 10, {5000: 1}),
            Leg("policy", PAPER_POLICY, HUGE[:-1], THREE, 5, {2000: 2, 5000: 1}),
        ),
        tables=("scale",),
        remarks=(
            "Cost is wall time of all commands per alive UAV and step, on a machine that was not kept quiet.",
            "The map grows with the swarm at the density of 500 UAVs on 1,600 m.",
            "Fewer cases where flights take minutes: phygail-paper thinks long, and center-fly ends in a crowd in "
            "which nearly every pair is a link. At N = 10,000 neither was flown.",
        ),
    )
)
_add(
    Experiment(
        "paper-layouts",
        "The paper's own fixed layouts",
        "Does the order of the methods depend on fresh layouts?",
        (
            Leg("fast", CHEAP, SIZES, FIVE, 50, LARGE_SWARMS, source="layouts"),
            Leg("policy", PAPER_POLICY, SIZES, FIVE, 50, FEWER_OF_POLICY, source="layouts"),
            Leg("planners", PLANNERS, SIZES, FIVE, 10, FEW, source="layouts"),
        ),
        tables=("aggregate", "by-size"),
        figures=("curves",),
        published=PAPER.get("overall").published,
        remarks=(
            "One layout per N, random damage; equal damage sets are flown once, so settings with few distinct ones "
            "have fewer cases. These layouts hold pairs closer than 10 m from the start (METHODS F5).",
            "The paper averages over damage 0.05 to 0.95 in steps of 0.05, we over 0.1 to 0.9 in steps of 0.2.",
            FEWER,
            POLICY_REMARK,
        ),
    )
)
_add(
    Experiment(
        "strike",
        "An area strike instead of random damage",
        "Does the order of the methods depend on how the damage is spread?",
        both(20, 10, uavs=LARGE, damage=FIVE, source="strike"),
        tables=("by-size", "over-bound"),
        figures=("curves",),
        remarks=("The UAVs nearest to a random point of the map are lost, as many as the ratio says.", FEWER),
    )
)
_add(
    Experiment(
        "single-failure",
        "One critical UAV fails, and two or three (paper: Table I)",
        "What does it cost to move a few UAVs instead of everybody, in time, meters and coverage?",
        (
            Leg("one", FEW_MOVE, FAILING, (), 200, source="single", failures=(1,)),
            Leg("spread", FEW_MOVE, FAILING, (), 100, source="single", failures=(2, 3)),
            Leg("region", FEW_MOVE, FAILING, (), 100, source="region", failures=(2, 3)),
        ),
        tables=("failures", "failures-by-size"),
        figures=("failures",),
        remarks=(
            "Layouts are redrawn until one has a critical UAV: these are swarms with a weak spot, not average ones.",
            "Failures enter with their whole step budget.",
            "Messages are broadcasts by each method's rule, our own count: published packet counts do not compare.",
            "No text of the six publications was at hand: the classics are after them, and no published number stands "
            "here (METHODS 9.0). Table I gives swarm scales of 15 to 250 for them and calls their damage small.",
        ),
    )
)
