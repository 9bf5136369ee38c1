"""The tables of the experiments, each a function from evidence to Markdown; the paper's numbers stand beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import polars as pl

from phygail.config import InputError, Registry
from phygail.experiments.catalog import LARGE
from phygail.experiments.experiment import Variant
from phygail.experiments.rows import TIMEOUT
from phygail.experiments.statistics import (
    Evidence,
    budget_text,
    case_rank,
    cases_text,
    common_by_world,
    common_cases,
    few_interval,
    log_entries,
    over_bound,
    sensed_column,
    sensed_means,
    setting_count,
    trainings_of,
    validations,
    weighed,
    weighed_mean,
    weighed_std,
    with_variants,
    world_means,
)
from phygail.render.tables import NOTHING, Column, cell_text, interval_text, markdown_table, table_cells

TABLES: Registry[Callable[[Evidence], str]] = Registry("table")

SOLVED = 0.95  # held-out success that counts as having learned to reconnect

# Keys that begin with "paper" are numbers that the paper prints.
_RECONNECTED = Column("reconnected", "convergence", ".3f")
_CONTACTS = Column("contacts per UAV", "contact_events_per_uav", ".3f")
_OVER_BOUND = Column("x bound", "over_bound", ".2f")
_AGGREGATE = (
    Column("method", "name"), Column("cases", "cases"), _RECONNECTED, Column("paper", "paper convergence", ".3f"),
    Column("time s", "time_s", ".2f", "time_s_std"), Column("paper", "paper time_s", ".2f", "paper time_std_s"),
    Column("capped contact rate", "contact_rate_capped", ".3f", "contact_rate_capped_std"),
    Column("paper", "paper contact_rate_capped", ".3f", "paper contact_std"), _CONTACTS, _OVER_BOUND,
    Column("rank of all", "rank", ".2f"), Column("rank of the paper's", "of_theirs", ".2f"),
    Column("paper", "paper rank", ".3f"),
)  # fmt: skip
_BY_SIZE = (
    Column("method", "name"), Column("cases", "cases"), _RECONNECTED, Column("steps", "steps", ".1f"),
    Column("time s", "time_s", ".2f", "time_s_std"), _OVER_BOUND, _CONTACTS,
    Column("capped contact rate", "contact_rate_capped", ".3f"), Column("distance m", "distance_m_per_uav", ".1f"),
)  # fmt: skip
_SAFETY = (
    _RECONNECTED, Column("time s", "time_s", ".2f"), _OVER_BOUND, _CONTACTS,
    Column("capped rate", "contact_rate_capped", ".3f"),
)  # fmt: skip
_SCALE = (
    Column("method", "name"), Column("N", "uavs", ","), Column("cases", "cases"), _RECONNECTED,
    Column("time s", "time_s", ".1f"), _OVER_BOUND, Column("µs per UAV and step", "cost_us", ".1f"),
)  # fmt: skip
_LEARNING = (
    Column("training", "name"), Column("epochs", "epochs"), Column("CPU minutes", "cpu_minutes", ".1f"),
    Column(f"success {SOLVED:g} at epoch", "solved"),
    Column("best epoch", "best_epoch"), Column("success", "success", ".3f"), _OVER_BOUND,
    Column("last success", "last_success", ".3f"), Column("last x bound", "last_over_bound", ".2f"),
)  # fmt: skip


def aggregate(evidence: Evidence) -> str:
    """Table II of the paper: convergence, time, contacts and rank over the large swarms."""
    sizes = [n for n in evidence.sizes if n in LARGE] or evidence.sizes
    rows = evidence.rows.filter(pl.col("uavs").is_in(sizes))
    settings, common = setting_count(rows), common_cases(rows)
    ranks, theirs = (
        mean_ranks(common),
        mean_ranks(common.filter(pl.col("method").is_in(list(evidence.experiment.published)))),
    )
    figures = weighed(rows).group_by("method").agg(
        weighed_mean("converged").alias("convergence"),
        *(weighed_mean(name).alias(name) for name in ("time_s", "contact_rate_capped", "contact_events_per_uav")),
        *(weighed_std(name).alias(f"{name}_std") for name in ("time_s", "contact_rate_capped")),
        over_bound().alias("over_bound"),
    )  # fmt: skip
    best_first = figures.sort("convergence", "time_s", "method", descending=[True, False, False])
    lines = [
        row
        | _named(name := row["method"], rows, settings)
        | _said(evidence, name)
        | {"rank": ranks.get(name), "of_theirs": theirs.get(name)}
        for row in best_first.iter_rows(named=True)
    ]
    cases = common["scenario"].n_unique()
    note = (
        f"Over N = {_listed(sizes)}; the paper's columns are over N = {_listed(LARGE)}. Mean ± standard deviation over "
        f"cases. Ranks are over the {cases:,} cases that every method flew: of all methods, and of those alone that "
        "the paper ranks.\n"
    )
    return f"## Aggregate\n\n{markdown_table(*table_cells(_AGGREGATE, lines))}\n{note}"


def by_size(evidence: Evidence) -> str:
    """Convergence, time, bound, contacts and distance per swarm size, best first."""
    means = ("steps", "time_s", "contact_events_per_uav", "contact_rate_capped", "distance_m_per_uav")
    parts = []
    for uavs in evidence.sizes:
        rows = evidence.rows.filter(pl.col("uavs") == uavs)
        figures = weighed(rows).group_by("method").agg(
            weighed_mean("converged").alias("convergence"), *(weighed_mean(name).alias(name) for name in means),
            weighed_std("time_s").alias("time_s_std"), over_bound().alias("over_bound"),
        )  # fmt: skip
        best_first = figures.sort("convergence", "steps", "method", descending=[True, False, False])
        lines = [row | _named(row["method"], rows, setting_count(rows)) for row in best_first.iter_rows(named=True)]
        parts.append(f"## {uavs:,} UAVs\n\n{markdown_table(*table_cells(_BY_SIZE, lines))}")
    return "\n".join(parts)


def bound_table(evidence: Evidence) -> str:
    """Time over bound by method and N, then by damage within each N."""
    sizes = evidence.sizes
    parts = ["## Time over bound by swarm size\n", markdown_table(*_ratio_cells(evidence, evidence.rows, "uavs", "N="))]
    for uavs in sizes:
        rows = evidence.rows.filter(pl.col("uavs") == uavs)
        parts += [f"## {uavs:,} UAVs, by damage ratio\n", markdown_table(*_ratio_cells(evidence, rows, "damage", ""))]
    return "\n".join(parts)


def runtime(evidence: Evidence) -> str:
    """Table IV of the paper: first response, solving time, steps."""
    parts = []
    for uavs in evidence.sizes:
        rows = evidence.rows.filter(pl.col("uavs") == uavs)
        pace = (pl.col("solve_s") * 1e3 / pl.col("steps")).median().alias("pace")
        figures = weighed(rows).group_by("method").agg(
            weighed_mean("steps").alias("steps"), weighed_std("steps").alias("steps_std"), pace,
            pl.col("first_action_ms", "solve_s").median(),
        )  # fmt: skip
        found = {row["method"]: row for row in figures.iter_rows(named=True)}
        lines = [
            found[name] | _named(name, rows, setting_count(rows)) | _said(evidence, name)
            for name in evidence.methods
            if name in found
        ]
        parts.append(f"## {uavs:,} UAVs\n\n{markdown_table(*table_cells(_runtime_columns(uavs), lines))}")
    return "\n".join(parts)


def _runtime_columns(uavs: int) -> tuple[Column, ...]:
    """The cells of the paper, which prints one number per swarm size."""
    return (
        Column("method", "name"), Column("cases", "cases"),
        Column("first response ms", "first_action_ms", ".2f"), Column("paper", f"paper response_ms@{uavs}", ".2f"),
        Column("solve s", "solve_s", ".3f"), Column("paper", f"paper solve_s@{uavs}", ".2f"),
        Column("ms per step", "pace", ".3f"), Column("steps", "steps", ".1f", "steps_std"),
        Column("paper", f"paper steps@{uavs}", ".1f"),
    )  # fmt: skip


def sensing(evidence: Evidence) -> str:
    """Convergence and time by noise or delay, whichever the experiment varies."""
    column, unit = sensed_column(evidence)
    levels = sorted(evidence.rows[column].unique())
    figures = sensed_means(evidence)
    parts = []
    for what, said_of, title, form in (
        ("converged", "convergence", "Reconnected", ".3f"),
        ("time_s", "time_s", "Recovery time, s", ".2f"),
    ):
        lines = []
        for name in evidence.methods:
            mine = figures.filter(pl.col("method") == name)
            values = dict(zip(mine[column], mine[what], strict=True))
            cases = cases_text(evidence.rows.filter(pl.col("method") == name).unique("scenario"), _settings(evidence))
            lines.append([f"`{name}`", cases, *(cell_text(values.get(level), form) for level in levels)])
        for name, said in evidence.experiment.published.items():
            cells = [cell_text(said.get(f"{said_of}@{level:g}"), form) for level in levels]
            lines.append([f"*paper:* `{name}`", "50", *cells])
        header = ["method", "cases", *(f"{level:g} {unit}" for level in levels)]
        parts.append(f"## {title}\n\n{markdown_table(header, lines)}")
    parts.append(f"Over N = {_listed(evidence.sizes)}, damage {_listed(sorted(evidence.rows['damage'].unique()))}.\n")
    return "\n".join(parts)


def safety(evidence: Evidence) -> str:
    """Contacts, time and convergence without and with the filter, on the cases that both flew."""
    flown = evidence.rows
    both = flown.filter(pl.col("safety").n_unique().over("scenario", "method") == 2)
    figures = weighed(both, ("method", "safety")).group_by("method", "safety").agg(
        pl.len().alias("cases"), weighed_mean("converged").alias("convergence"), over_bound().alias("over_bound"),
        *(weighed_mean(name).alias(name) for name in ("time_s", "contact_events_per_uav", "contact_rate_capped")),
    )  # fmt: skip
    lines = []
    for name in evidence.methods:
        mine = {row["safety"]: row for row in figures.filter(pl.col("method") == name).iter_rows(named=True)}
        if len(mine) == 2:
            pairs = [column.cell(mine[state]) for column in _SAFETY for state in ("off", "on")]
            lines.append([f"`{name}`", str(mine["off"]["cases"]), *pairs])
    header = ["method", "cases", *(f"{column.title}, {state}" for column in _SAFETY for state in ("off", "on"))]
    return f"## Without and with the filter, N = {_listed(evidence.sizes)}\n\n{markdown_table(header, lines)}"


def scale(evidence: Evidence) -> str:
    """Convergence, time over bound and cost per UAV of large swarms."""
    timed_out = pl.col("flag").str.split(";").list.contains(TIMEOUT)  # these did not fly all the steps of their row
    work = (pl.col("steps") * pl.col("alive")).filter(~timed_out).sum()
    figures = weighed(evidence.rows).group_by("uavs", "method").agg(
        pl.len().alias("cases"), weighed_mean("converged").alias("convergence"), weighed_mean("time_s").alias("time_s"),
        over_bound().alias("over_bound"), (pl.col("solve_s").filter(~timed_out).sum() * 1e6 / work).alias("cost_us"),
    )  # fmt: skip
    lines = [
        row | {"name": f"`{name}`"}
        for name in evidence.methods
        for row in figures.filter(pl.col("method") == name).sort("uavs").iter_rows(named=True)
    ]
    return f"## Large swarms\n\n{markdown_table(*table_cells(_SCALE, lines))}"


def worlds(evidence: Evidence) -> str:
    """What each world costs reach-evolved: success, split steps, factor to the plain world on the same cases."""
    rows = evidence.rows.filter(pl.col("method") == "reach-evolved")
    return f"## `reach-evolved` by world\n\n{_world_table(rows)}" if rows.height else ""


def worlds_common(evidence: Evidence) -> str:
    """All methods with a few cases on the cases of each world that all of them flew."""
    rows = common_by_world(evidence.rows)
    return f"## All methods on the same cases\n\n{_world_table(rows)}" if rows.height else ""


def _world_table(rows: pl.DataFrame) -> str:
    header = ["world", "method", "N", "damage", "cases", "reconnected", "split steps", "x plain", "first step",
              "re-splits", "largest share", "contacts per UAV"]  # fmt: skip
    lines = []
    means = sorted(world_means(rows).iter_rows(named=True), key=lambda row: (row["world"], row["method"]))
    for row in means:
        mine = rows.filter((pl.col("world") == row["world"]) & (pl.col("method") == row["method"]))
        lines.append([
            row["world"] or "plain", f"`{row['method']}`", _listed(sorted(mine["uavs"].unique())),
            _listed(sorted(mine["damage"].unique())), str(row["cases"]), cell_text(row["converged"], ".3f"),
            cell_text(row["split"], ".1f"), interval_text(row["factor"], row["factor_low"], row["factor_high"]),
            cell_text(row["first_step"], ".1f"),
            cell_text(row["resplits"], ".2f"), cell_text(row["largest_share"], ".3f"),
            cell_text(row["contact_events_per_uav"], ".4f"),
        ])  # fmt: skip
    return markdown_table(header, lines)


for _name, _table in (
    ("worlds", worlds), ("worlds-common", worlds_common),
    ("aggregate", aggregate), ("by-size", by_size), ("over-bound", bound_table), ("runtime", runtime),
    ("sensing", sensing), ("safety", safety), ("scale", scale),
):  # fmt: skip
    TABLES.add(_name, _table)


# --- cells -----------------------------------------------------------------------------------------------------------


def mean_ranks(common: pl.DataFrame) -> dict[str, float]:
    """Mean rank of every method over cases that all flew, settings weighed alike."""
    if common.is_empty():
        return {}
    ranked = weighed(common.with_columns(rank=case_rank()))
    means = ranked.group_by("method").agg(weighed_mean("rank").alias("rank"))
    return dict(zip(means["method"], means["rank"], strict=True))


def _ratio_cells(evidence: Evidence, rows: pl.DataFrame, column: str, prefix: str) -> tuple[list[str], list[list[str]]]:
    """Time over bound: a row per method, a column per value of `column`."""
    values = sorted(rows[column].unique())
    figures = weighed(rows).group_by("method", column).agg(over_bound().alias("ratio"))
    lines = []
    for name in evidence.methods:
        mine = figures.filter(pl.col("method") == name)
        ratios = dict(zip(mine[column], mine["ratio"], strict=True))
        lines.append([f"`{name}`", *(cell_text(ratios.get(value), ".2f") for value in values)])
    return ["method", *(f"{prefix}{value:g}" for value in values)], lines


def _settings(evidence: Evidence) -> int:
    return setting_count(evidence.rows)


def _named(name: str, rows: pl.DataFrame, settings: int) -> dict[str, str]:
    """Name and number of cases of a method."""
    return {"name": f"`{name}`", "cases": cases_text(rows.filter(pl.col("method") == name), settings)}


def _said(evidence: Evidence, name: str) -> dict[str, float]:
    """What the paper prints about a method."""
    return {f"paper {key}": value for key, value in evidence.experiment.published.get(name, {}).items()}


def _listed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:,}" if isinstance(value, int) else f"{value:g}" for value in values)


def variants(evidence: Evidence) -> str:
    """Table III of the paper: every variant against the full model, ours beside the paper's differences."""
    rows = with_variants(evidence)
    parts = [f"Trained alike: {_budget(evidence)}.\n"]
    for uavs in evidence.sizes:
        here = rows.filter(pl.col("uavs") == uavs)
        figures = {row["name"]: row for row in _figures(here).iter_rows(named=True)}
        full = figures.get(evidence.experiment.variants[0].name)
        lines = [
            _variant_cells(variant, figures[variant.name], full, uavs)
            for variant in evidence.experiment.variants
            if variant.name in figures
        ]
        header = [
            "variant", "seeds", "cases", "reconnected", "difference", "paper", "time s", "difference", "paper",
            "x bound", "contacts per UAV", "rank", "paper, overall",
        ]  # fmt: skip
        parts.append(f"## {uavs:,} UAVs\n\n{markdown_table(header, lines)}")
    return "\n".join(parts)


def _figures(rows: pl.DataFrame) -> pl.DataFrame:
    # Within a case every policy is ranked against every other; those of two seeds are two policies.
    ranked = weighed(rows.with_columns(rank=case_rank()), ("name",))
    return ranked.group_by("name").agg(
        pl.col("training_seed").n_unique().alias("seeds"), pl.len().alias("cases"),
        weighed_mean("converged").alias("convergence"), weighed_mean("time_s").alias("time_s"),
        over_bound().alias("over_bound"), weighed_mean("contact_events_per_uav").alias("contacts"),
        weighed_mean("rank").alias("rank"),
    )  # fmt: skip


def _variant_cells(variant: Variant, row: dict[str, Any], full: dict[str, Any] | None, uavs: int) -> list[str]:
    def beside(name: str, form: str) -> list[str]:
        said = variant.published.get(f"{name}@{uavs}")
        own = None if full is None or row is full else row[name] - full[name]
        return [cell_text(row[name], form), *(cell_text(value, "+" + form) for value in (own, said))]

    return [
        f"{variant.label} (`{variant.name}`)", str(row["seeds"]), str(row["cases"]), *beside("convergence", ".3f"),
        *beside("time_s", ".2f"), cell_text(row["over_bound"], ".2f"), cell_text(row["contacts"], ".3f"),
        cell_text(row["rank"], ".2f"), cell_text(variant.published.get("rank"), ".3f"),
    ]  # fmt: skip


def _budget(evidence: Evidence) -> str:
    """The one budget of all trainings; two are an error, since their policies must not be compared."""
    budgets = {budget_text(folder): name for name, folder in trainings_of(evidence.folder)}
    if len(budgets) > 1:
        raise InputError(
            f"{evidence.folder} mixes trainings of different budgets: {'; '.join(budgets)}; train them alike"
        )
    return next(iter(budgets), "unknown")


def verdicts(evidence: Evidence) -> str:
    """The paper's claim behind every variant: does its part help? By steps over those of the full model.

    A seed of a variant meets the same seed of the full model on the same cases: one ratio of summed steps per seed. The
    claim is confirmed where the 95 % t interval of the mean ratio lies above 1, refuted where it lies below.
    """
    rows = with_variants(evidence)
    full, *others = evidence.experiment.variants
    judged = {name.rsplit("-s", 1)[0]: folder for name, folder in trainings_of(evidence.folder)}
    lines = []
    for variant in others:
        cells = [_verdict(rows, variant.name, full.name, uavs, ("confirmed", "refuted")) for uavs in evidence.sizes]
        lines.append([f"{variant.label} (`{variant.name}`)", *cells, _judgment(judged.get(variant.name))])
    header = ["without", *(f"steps over the full model's, {uavs:,} UAVs" for uavs in evidence.sizes), "D at the end"]
    return "## Verdicts: does the part help?\n\n" + markdown_table(header, lines)


def changes(evidence: Evidence) -> str:
    """What every single change to a training does to its policies, by steps over those of the unchanged one."""
    rows, folders = with_variants(evidence), dict(trainings_of(evidence.folder))
    full, *_ = evidence.experiment.variants
    lines = []
    for variant in evidence.experiment.variants:
        mine = rows.filter(pl.col("name") == variant.name)
        if not mine.height:
            continue
        minutes = pl.Series([log_entries(folders[name])[-1]["cpu_minutes"] for name in mine["variant"].unique()])
        cells = [cell_text(minutes.mean(), ".1f"), cell_text(mine["converged"].mean(), ".3f")]
        for uavs in evidence.sizes:
            ratio = _verdict(rows, variant.name, full.name, uavs, ("slower", "faster")) if variant != full else NOTHING
            cells += [cell_text(mine.filter(pl.col("uavs") == uavs)["steps"].mean(), ".1f"), ratio]
        lines.append([f"{variant.label} (`{variant.name}`)", *cells])
    sizes = [text for uavs in evidence.sizes for text in (f"steps, {uavs:,} UAVs", "over the unchanged")]
    table = markdown_table(["change", "CPU min", "reconnected", *sizes], lines)
    return f"## One change each\n\nUnchanged: {budget_text(folders[f'{full.name}-s0'])}.\n\n{table}"


def _verdict(rows: pl.DataFrame, name: str, full: str, uavs: int, words: tuple[str, str]) -> str:
    """The ratio of steps to the full model's, and a word of two: for an interval above 1, and for one below."""
    key = ["training_seed", "scenario"]
    here = rows.filter(pl.col("uavs") == uavs)
    mine, theirs = (here.filter(pl.col("name") == who).select(*key, "steps") for who in (name, full))
    both = mine.join(theirs, on=key, suffix="_full").group_by("training_seed").agg(pl.col("steps", "steps_full").sum())
    if not both.height:
        return "undecided: not run"
    ratios = (both["steps"] / both["steps_full"]).to_numpy()
    if len(ratios) < 2:
        return f"{ratios[0]:.3f}; undecided: one seed"
    mean, low, high = few_interval(ratios)
    word = words[0] if low > 1 else words[1] if high < 1 else "undecided"
    return f"{mean:.3f} ({low:.3f} to {high:.3f}, {len(ratios)} seeds); {word}"


def _judgment(folder: Path | None) -> str:
    """What the discriminator said of experts and of the policy in the last epoch of a training."""
    last = (log_entries(folder)[-1].get("discriminator") if folder else None) or {}
    return f"{last['d_expert']:.2f} / {last['d_policy']:.2f}" if last else NOTHING


def learning(evidence: Evidence) -> str:
    """When every training learned to reconnect, and how good it became, on held-out scenarios."""
    lines = []
    for name, folder in trainings_of(evidence.folder):
        points = validations(folder)
        if not points:
            continue
        best, last = min(points, key=lambda p: (-p["success"], p["over_bound"])), points[-1]
        lines.append({
            "name": f"`{name}`", "epochs": last["epoch"], "cpu_minutes": last["cpu_minutes"],
            "best_epoch": best["epoch"], "success": best["success"],
            "solved": next((p["epoch"] for p in points if p["success"] >= SOLVED), None),
            "over_bound": best["over_bound"], "last_success": last["success"], "last_over_bound": last["over_bound"],
        })  # fmt: skip
    table = markdown_table(*table_cells(_LEARNING, lines))
    return f"## Learning, on held-out scenarios of 20 UAVs\n\n{_budget(evidence)}.\n\n{table}"


def case_study(evidence: Evidence) -> str:
    """One case flown by policies along the training."""
    rows = evidence.rows.sort("variant")
    lines = [
        [row["variant"].removeprefix("epoch-").lstrip("0"), "yes" if row["converged"] else "no", str(row["steps"]),
         cell_text(row["contact_events_per_uav"], ".2f")]
        for row in rows.iter_rows(named=True)
    ]  # fmt: skip
    bound, case = rows["bound_steps"][0], rows["scenario"][0]
    table = markdown_table(["epoch", "reconnected", "steps", "contacts per UAV"], lines)
    facts = f"{case}: {rows['uavs'][0]} UAVs, {rows['damaged'][0]} damaged, {rows['subnets'][0]} subnets"
    return f"## {facts}\n\n{table}\nLower bound: {bound} steps. Trajectories: trajectories.png.\n"
