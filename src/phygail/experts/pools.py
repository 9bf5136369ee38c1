"""Who may become the expert: named pools of methods, and which of them can fly here (METHODS 4.5)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np

from phygail.config import InputError
from phygail.methods import METHODS
from phygail.methods.base import run_episode
from phygail.swarm.scenario import make_scenario

# The order decides ties: who flies on local information stands before who plans with global information, because the
# learner, too, sees only its surroundings. Every method flies with its defaults.
POOLS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "paper": ("center-fly", "hero", "sidr", "cr-mgc", "demd", "gdr-ts", "cr-ma"),
        "decentralized": ("sidr", "reach", "center-fly", "hero", "cr-ma"),
        "all": ("sidr", "reach", "center-fly", "hero", "cr-ma", "convex", "cr-mgc", "demd", "gdr-ts"),
    }
)

log = logging.getLogger("phygail")


def choose_pool(pool: str, without: Iterable[str] = ()) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """(methods, left out, missing) of a pool: who flies, who shall not, and who cannot here.

    Args:
        pool: Key of `POOLS`.
        without: Members of the pool that the user leaves out, slow planners for instance.
    """
    if pool not in POOLS:
        raise InputError(f"unknown pool {pool!r}: there are {', '.join(POOLS)}")
    members = POOLS[pool]
    unwanted = set(without)
    for name in sorted(unwanted - set(members)):
        raise InputError(f"{name!r} is not in the pool {pool}: it holds {', '.join(members)}")
    wanted = [name for name in members if name not in unwanted]
    missing = tuple(name for name in wanted if not can_fly(name))
    methods = tuple(name for name in wanted if name not in missing)
    if not methods:
        raise InputError(f"nobody is left in the pool {pool}: leave out fewer of {', '.join(members)}")
    return methods, tuple(name for name in members if name in unwanted), missing


def can_fly(name: str) -> bool:
    """Whether a method is registered and has the extra and the weights it needs; if not, a warning says why."""
    if name not in METHODS:
        log.warning("the pool lacks %s: there is no such method in this version", name)
        return False
    if not METHODS.get(name).learned:
        return True
    # Some methods read their weights when they first plan: only a flight tells. Two pairs, 1 m out of range.
    pairs = np.array([[0.0, 0.0], [50.0, 0.0], [171.0, 0.0], [221.0, 0.0], [100.0, 60.0]])
    try:
        run_episode(make_scenario("probe", pairs, [4], budget_steps=1), name)
    except InputError as error:
        log.warning("the pool lacks %s: %s", name, error)
        return False
    return True
