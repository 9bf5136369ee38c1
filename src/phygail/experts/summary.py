"""What an expert database holds, in numbers: who wins, and how long the experts take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phygail.experts.dataset import ExpertSet


@dataclass(frozen=True)
class MethodShare:
    """One method over all scenarios of a database.

    Attributes:
        name: Method. wins: Scenarios of which it is the expert. share: Of all scenarios.
        success: Share of scenarios it reconnects. mean_steps: A failure counts as the whole budget.
        contacts: Mean contact events per UAV. raised: Episodes ended by an error.
    """

    name: str
    wins: int
    share: float
    success: float
    mean_steps: float
    contacts: float
    raised: int


@dataclass(frozen=True)
class RatioSummary:
    """The experts at one damage ratio.

    Attributes:
        ratio: Damage ratio. scenarios: Kept. held_out: Of these, for validation. dropped: Nobody solved them.
        mean, median, p90, most: T_E in steps; NaN and 0 without a scenario.
        favorite: Who wins most often.
    """

    ratio: float
    scenarios: int
    held_out: int
    dropped: int
    mean: float
    median: float
    p90: float
    most: int
    favorite: str


def method_shares(experts: ExpertSet) -> list[MethodShare]:
    """One entry per method, most wins first."""
    table = experts.archive
    wins = np.bincount(table.winner, minlength=len(experts.methods))
    shares = [
        MethodShare(
            name, int(wins[m]), float(wins[m] / len(table)), float(table.success[:, m].mean()),
            float(table.moves[:, m].mean()), float(table.contacts[:, m].mean()), int(table.raised[:, m].sum()),
        )
        for m, name in enumerate(experts.methods)
    ]  # fmt: skip
    return sorted(shares, key=lambda share: -share.wins)


def by_ratio(experts: ExpertSet) -> list[RatioSummary]:
    """One entry per damage ratio, in the order of the config."""
    table, dropped = experts.archive, experts.about["dropped"]
    entries = []
    for ratio in experts.config["damage"]:
        here = table.ratio == ratio
        steps, kept = table.expert_steps[here], int(here.sum())
        mean, median, p90 = (steps.mean(), *np.percentile(steps, (50, 90))) if kept else (np.nan,) * 3
        favorite = experts.methods[np.bincount(table.winner[here]).argmax()] if kept else ""
        entries.append(
            RatioSummary(
                ratio, kept, int(table.held_out[here].sum()), int(dropped.get(f"{ratio:g}", 0)),
                float(mean), float(median), float(p90), int(steps.max(initial=0)), favorite,
            )
        )  # fmt: skip
    return entries
