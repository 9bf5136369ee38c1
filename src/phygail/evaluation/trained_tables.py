"""Tables and curves of policies trained for an experiment, from their rows and logs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from phygail.config import InputError
from phygail.evaluation.evidence import Evidence, over_bound, weighed, weighed_mean
from phygail.evaluation.experiment import Variant
from phygail.evaluation.style import INK, PICTURE_SUFFIXES, SOFT, checked_draft, dress_axes, line_styles, save_figure
from phygail.evaluation.style import new_figure as blank
from phygail.evaluation.summary import case_rank
from phygail.evaluation.tables import NOTHING, cell_text, markdown_table
from phygail.evaluation.training_files import LOG, budget_text
from phygail.files import read_text

SOLVED = 0.95  # held-out success that counts as having learned to reconnect
DISTINCT = 8  # colors; further lines are dashed
_SEEDED = re.compile(r"^(?P<variant>.+)-s(?P<seed>\d+)$")


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


def with_variants(evidence: Evidence) -> pl.DataFrame:
    """The rows with `name` and `training_seed` of the variant that flew, from the name of its policy."""
    parts = pl.col("variant").str.extract_groups(_SEEDED.pattern)
    return evidence.rows.with_columns(
        name=parts.struct.field("variant"), training_seed=parts.struct.field("seed").cast(pl.Int64)
    )


def _figures(rows: pl.DataFrame) -> pl.DataFrame:
    # Within a case every policy is ranked against every other, seeds apart.
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
    budgets = {budget_text(folder): name for name, folder in _trainings(evidence.folder)}
    if len(budgets) > 1:
        raise InputError(f"{evidence.folder} mixes trainings of unlike budgets: {'; '.join(budgets)}; train them alike")
    return next(iter(budgets), "unknown")


def learning(evidence: Evidence) -> str:
    """When every training learned to reconnect, and how good it became, on held-out scenarios."""
    lines = []
    for name, folder in _trainings(evidence.folder):
        points = validations(folder)
        if not points:
            continue
        solved = next((str(p["epoch"]) for p in points if p["success"] >= SOLVED), NOTHING)
        best = min(points, key=lambda p: (-p["success"], p["over_bound"]))
        lines.append([
            f"`{name}`", str(points[-1]["epoch"]), solved, str(best["epoch"]), cell_text(best["success"], ".3f"),
            cell_text(best["over_bound"], ".2f"), cell_text(points[-1]["success"], ".3f"),
            cell_text(points[-1]["over_bound"], ".2f"),
        ])  # fmt: skip
    header = [
        "training", "epochs", f"success {SOLVED:g} at epoch", "best epoch", "success", "x bound", "last success",
        "last x bound",
    ]  # fmt: skip
    return f"## Learning, on held-out scenarios of 20 UAVs\n\n{_budget(evidence)}.\n\n{markdown_table(header, lines)}"


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


def validations(folder: Path) -> list[dict[str, float]]:
    """Epoch, success and time over bound of every validation in a log."""
    entries = [json.loads(line) for line in read_text(folder / LOG).splitlines() if line.strip()]
    return [{"epoch": entry["epoch"], **entry["validation"]} for entry in entries if entry.get("validation")]


def _trainings(folder: Path) -> Iterable[tuple[str, Path]]:
    """(name, folder) of every training whose log stands below a folder."""
    return [(path.parent.name, path.parent) for path in sorted(folder.glob(f"*/{LOG}"))]


def draw_learning(evidence: Evidence, path: Path) -> None:
    """Held-out success and time over bound by epoch, a line per variant, the mean of its seeds."""
    with checked_draft(path, PICTURE_SUFFIXES) as draft:
        save_figure(learning_figure(evidence), draft)


def learning_figure(evidence: Evidence) -> Figure:
    """The figure behind `draw_learning`."""
    curves = learning_curves(evidence.folder)
    figure = blank(9.0, 3.4 + 0.2 * len(curves) / 5)
    panels = figure.subplots(1, 2)
    shown = (("success", "held-out success"), ("over_bound", "time over bound"))
    for axes, (what, label) in zip(panels, shown, strict=True):
        for number, (name, style) in enumerate(line_styles(curves).items()):
            mine = curves[name]
            axes.plot(
                mine["epoch"], mine[what], color=style.color, linewidth=1.3, label=name if what == "success" else None,
                linestyle=("-", "--", ":")[number // DISTINCT % 3], marker=style.marker, markersize=3.0,
            )  # fmt: skip
        axes.set_xlabel("epoch", fontsize=8.5, color=SOFT)
        axes.set_ylabel(label, fontsize=9, color=INK)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        dress_axes(axes)
    panels[0].set_ylim(-0.04, 1.06)
    panels[1].set_ylim(bottom=0.9)
    figure.subplots_adjust(left=0.07, right=0.98, top=0.97, bottom=0.18 + 0.05 * len(curves) / 5, wspace=0.2)
    figure.legend(loc="lower center", ncols=5, frameon=False, fontsize=8, labelcolor=INK)
    return figure


def learning_curves(folder: Path) -> dict[str, pl.DataFrame]:
    """Epoch, success and time over bound of every variant, the mean of its seeds."""
    points = [
        {"name": _SEEDED.sub(r"\g<variant>", name), **point}
        for name, training in _trainings(folder)
        for point in validations(training)
    ]
    if not points:
        raise InputError(f"{folder} holds no validation to draw: train for more epochs")
    means = pl.DataFrame(points).group_by("name", "epoch").agg(pl.col("success", "over_bound").mean()).sort("epoch")
    return {str(name): part for (name,), part in means.sort("name", "epoch").group_by("name", maintain_order=True)}
