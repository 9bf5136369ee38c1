"""From raw rows to figures per method (METHODS 2.6).

Scenarios that were already connected after the damage say nothing about a method and are left out everywhere.
"""

from __future__ import annotations

import polars as pl

from phygail.evaluation.grid import DRAWN_ID

NORMAL_95 = 1.959963984540054  # half width of a 95 % confidence interval in standard errors


def split_cases(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows whose swarm was split, with two further columns: `damage` (nominal ratio) and `rank`."""
    split = rows.filter(pl.col("subnets") > 1)
    # Drawn scenarios carry their ratio in the id: 13 of 50 damaged is the cell 0.25, not 0.26.
    drawn = pl.col("scenario").str.extract(DRAWN_ID, 1).cast(pl.Float64)
    actual = (pl.col("damaged") / pl.col("uavs")).round(3)
    return split.with_columns(damage=pl.coalesce(drawn, actual), rank=case_rank())


def case_rank() -> pl.Expr:
    """Rank of a method within its case: the mean of its ranks by success, time and capped contact rate.

    Ties share the mean rank; failures tie last on success. A method that raised has no contact rate and is last.
    """
    contacts = pl.col("contact_rate_capped").fill_null(float("inf"))
    ranks = [value.rank("average").over("scenario") for value in (1 - pl.col("converged"), pl.col("time_s"), contacts)]
    return pl.mean_horizontal(ranks)


def summarize(rows: pl.DataFrame, by: str | None = None) -> pl.DataFrame:
    """Figures per method, pooled over all rows or within each value of `by` ("uavs", "damage").

    Columns: method, cases, convergence (rate), steps (mean), time_s (mean), time_std_s, time_ci95_s (half width of the
    normal interval, 1.96 s / sqrt(cases)), over_bound (sum of steps over sum of bounds, cases with a bound above 0),
    contact_events_per_uav, contact_rate_raw, contact_rate_capped, distance_m_per_uav (means), first_action_ms (median),
    solve_s (mean), rank (mean), errors (count).
    Failures enter with the whole budget. Best first: by convergence, then by pooled steps.
    """
    bounded = pl.col("bound_steps") > 0
    means = ("contact_events_per_uav", "contact_rate_raw", "contact_rate_capped", "distance_m_per_uav", "solve_s")
    groups = [by, "method"] if by else ["method"]
    figures = (
        split_cases(rows)
        .group_by(groups)
        .agg(
            pl.len().alias("cases"),
            pl.col("converged").mean().alias("convergence"),
            pl.col("steps").mean(),
            pl.col("time_s").mean(),
            pl.col("time_s").std().alias("time_std_s"),
            (NORMAL_95 * pl.col("time_s").std() / pl.len().sqrt()).alias("time_ci95_s"),
            (pl.col("steps").filter(bounded).sum() / pl.col("bound_steps").filter(bounded).sum()).alias("over_bound"),
            *(pl.col(name).mean() for name in means),
            pl.col("first_action_ms").median(),
            pl.col("rank").mean(),
            pl.col("flag").str.starts_with("error:").sum().cast(pl.Int64).alias("errors"),
        )
    )
    order = [*groups[:-1], "convergence", "steps", "method"]
    return figures.sort(order, descending=[False] * (len(groups) - 1) + [True, False, False])


def steps_by_damage(rows: pl.DataFrame) -> pl.DataFrame:
    """Mean steps: a row per method (best first, then the bound), a column per damage ratio."""
    split = split_cases(rows)
    best_first = summarize(rows)["method"].to_list()
    bound = split.unique("scenario").select(
        "damage", method=pl.lit("bound"), steps=pl.col("bound_steps"), place=pl.lit(len(best_first))
    )
    place = pl.col("method").replace_strict(best_first, range(len(best_first)), return_dtype=pl.Int32)
    flown = split.select("damage", "method", "steps", place=place)
    means = pl.concat([flown, bound]).group_by("place", "method", "damage").agg(pl.col("steps").mean())
    wide = means.sort("damage").pivot("damage", index=["place", "method"], values="steps")
    return wide.sort("place").drop("place")
