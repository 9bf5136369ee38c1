"""The tables of the propositions: measured against claimed."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from phygail.config import InputError
from phygail.evaluation.evidence import Evidence
from phygail.evaluation.propositions import COST, MEASURES, Measure, read_cost, read_measures
from phygail.evaluation.tables import cell_text, markdown_table
from phygail.experts.pools import POOLS


def propositions(evidence: Evidence) -> str:
    """Spectral norm, pseudo-force and cost per UAV over swarm size."""
    rows = read_measures(evidence.folder / MEASURES)
    if not rows:
        raise InputError(f"{evidence.folder} holds no {MEASURES}: run phygail reproduce propositions")
    sizes = sorted({row["uavs"] for row in rows})
    parts = [
        "## Proposition 1: spectral norm of the perception graph\n",
        markdown_table(
            ["N", "alive", "largest in-degree", "largest out-degree, no center", "norm, no center", "norm with center",
             "sqrt(alive)", "the paper's bound"],
            [_norm_cells(n, [row for row in rows if row["uavs"] == n]) for n in sizes],
        ),
    ]  # fmt: skip
    forces = [row for row in rows if row["quantity"] == "force"]
    cost = read_cost(evidence.folder / COST)
    if forces:
        parts += [
            f"## Proposition 2: pseudo-force ({cost['weights']} weights)\n",
            markdown_table(
                ["N", "largest force of any UAV and layer", "bound from the weights"],
                [[f"{n:,}", *_largest([row for row in forces if row["uavs"] == n])] for n in sizes],
            ),
        ]
    parts += ["## Cost per UAV\n", markdown_table(
        ["N", "neighbors heard per round, mean", "most", "at most"],
        [_heard_cells(n, [row for row in rows if row["uavs"] == n]) for n in sizes],
    )]  # fmt: skip
    if cost:
        facts = ", ".join(f"{value:,} {name}" for name, value in cost.items() if name != "weights")
        parts.append(f"The same for every N: {facts}.\n")
    return "\n".join(parts)


def terminal_reward(evidence: Evidence) -> str:
    """Variance of the terminal success reward against its bound, per swarm size."""
    from phygail.training.profiles import TrainConfig  # torch

    config = TrainConfig()
    limit = (config.r_time * config.eta_max) ** 2 / 4
    sharp = (config.r_time * min(config.eta_max, math.exp(config.decay))) ** 2 / 4
    rows = with_expert_steps(evidence.rows)
    lines = []
    for name in evidence.methods:
        for uavs in evidence.sizes:
            mine = rows.filter((pl.col("method") == name) & (pl.col("uavs") == uavs) & (pl.col("converged") == 1))
            reward = success_reward(mine)
            if len(reward) > 1:
                lines.append([
                    f"`{name}`", f"{uavs:,}", str(len(reward)), cell_text(mine["steps"].var(), ".0f"),
                    cell_text(float(reward.mean()), ".1f"), cell_text(float(reward.var(ddof=1)), ".1f"),
                    f"{limit:.0f}", f"{sharp:.0f}",
                ])  # fmt: skip
    header = ["method", "N", "successes", "variance of steps", "mean reward", "variance", "the paper's bound", "sharp"]
    note = (
        f"r = {config.r_base:g} + {config.r_time:g} eta(t), T_E of the fastest of the paper's pool on the same case; "
        f"sharp: with lambda = {config.decay:g}, eta never exceeds e, so its cap {config.eta_max:g} is never reached.\n"
    )
    return f"## Proposition 3: variance of the terminal reward\n\n{markdown_table(header, lines)}\n{note}"


def with_expert_steps(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of cases that an expert of the paper's pool solved, with its steps T_E as `expert_steps`."""
    solved = rows.filter(pl.col("method").is_in(POOLS["paper"]) & (pl.col("converged") == 1))
    return rows.join(solved.group_by("scenario").agg(pl.col("steps").min().alias("expert_steps")), on="scenario")


def success_reward(rows: pl.DataFrame) -> np.ndarray:
    """(n,) terminal reward of successes with the paper's constants, before scaling."""
    from phygail.training.profiles import TrainConfig
    from phygail.training.rewards import pace_steps, speed_bonus

    config = TrainConfig()
    steps, expert = rows["steps"].to_numpy(), rows["expert_steps"].to_numpy()
    return config.r_base + config.r_time * speed_bonus(steps, pace_steps(expert, np.zeros_like(steps), config), config)


def _largest(rows: list[Measure]) -> list[str]:
    return [cell_text(max(row["value"] for row in rows), ".3f"), cell_text(rows[0]["bound"], ".1f")] if rows else []


def _value(rows: list[Measure], quantity: str, form: str) -> str:
    values = [row["value"] for row in rows if row["quantity"] == quantity]
    return cell_text(max(values), form) if values else cell_text(None, form)


def _norm_cells(uavs: int, rows: list[Measure]) -> list[str]:
    alive = max(row["alive"] for row in rows)
    claim = next(row["bound"] for row in rows if row["quantity"] == "norm_without_center")
    return [
        f"{uavs:,}", f"{alive:,}", _value(rows, "in_degree", ".0f"), _value(rows, "out_degree", ".0f"),
        _value(rows, "norm_without_center", ".2f"), _value(rows, "norm_with_center", ".2f"),
        f"{math.sqrt(alive):.2f}", f"{claim:.1f}",
    ]  # fmt: skip


def _heard_cells(uavs: int, rows: list[Measure]) -> list[str]:
    most = next(row["bound"] for row in rows if row["quantity"] == "neighbors_heard_most")
    mean, largest = _value(rows, "neighbors_heard_mean", ".2f"), _value(rows, "neighbors_heard_most", ".0f")
    return [f"{uavs:,}", mean, largest, f"{most:.0f}"]
