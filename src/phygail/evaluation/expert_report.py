"""The summary of an expert database: tables for the terminal, Markdown, and a histogram of T_E."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from phygail.evaluation.style import FAINT, INK, PICTURE_SUFFIXES, checked_draft, line_styles, new_figure, save_figure
from phygail.evaluation.tables import cell_text, markdown_table, terminal_table
from phygail.evaluation.text_table import TextTable
from phygail.experts.dataset import ExpertSet
from phygail.experts.summary import by_ratio, method_shares

WINS, RATIOS = "Who is the expert", "T_E in steps by damage ratio"
NOTES = (
    "The expert of a scenario is the success with the fewest moves; ties go to fewer contacts, then to the order of "
    "the pool. Scenarios that nobody solves are dropped and enter no other figure. Failures of a method count as "
    "its whole step budget. Held-out scenarios are for validation."
)
MOST_BINS = 60

Cells = tuple[list[str], list[list[str]]]  # header, rows


def win_cells(experts: ExpertSet) -> Cells:
    """Header and rows of the table of methods."""
    header = ["method", "wins", "share", "reconnected", "mean steps", "contacts", "errors"]
    rows = [
        [s.name, f"{s.wins:,}", f"{s.share:.1%}", f"{s.success:.1%}", f"{s.mean_steps:.1f}", f"{s.contacts:.3f}",
         str(s.raised)]
        for s in method_shares(experts)
    ]  # fmt: skip
    return header, rows


def ratio_cells(experts: ExpertSet) -> Cells:
    """Header and rows of the table of damage ratios."""
    header = ["damage", "scenarios", "held out", "dropped", "mean", "median", "p90", "max", "most wins"]
    rows = [
        [f"{r.ratio:.3g}", str(r.scenarios), str(r.held_out), str(r.dropped), cell_text(r.mean, ".1f"),
         cell_text(r.median, ".1f"), cell_text(r.p90, ".1f"), str(r.most), r.favorite]
        for r in by_ratio(experts)
    ]  # fmt: skip
    return header, rows


def expert_tables(experts: ExpertSet) -> tuple[TextTable, TextTable]:
    """Both tables for the terminal."""
    return terminal_table(WINS, *win_cells(experts)), terminal_table(RATIOS, *ratio_cells(experts))


def facts(experts: ExpertSet) -> str:
    """Pool, absences and counts in one sentence each."""
    config, dropped = experts.config, sum(experts.about["dropped"].values())
    absent = [
        f"{what}: {', '.join(config[key])}."
        for key, what in (("left_out", "Left out on request"), ("missing", "Missing because they cannot fly here"))
        if config[key]
    ]
    kept = f"{len(experts):,} scenarios of {config['uavs']} UAVs, {len(experts.held_out):,} held out, {dropped} dropped"
    return " ".join([f"Pool {config['pool']}: {', '.join(config['methods'])}.", *absent, f"{kept}."])


def expert_markdown(experts: ExpertSet) -> str:
    """The summary as Markdown: how the database was made, who wins, T_E by damage ratio."""
    about = experts.about
    command = [f"    {about['command']}\n"] if about["command"] else []
    content = about["content_sha256"][:16]
    origin = f"phygail {about['package_version']}, seed {about['seed']}, content sha256:{content}…\n"
    return "\n".join(
        [
            "# Expert database\n", *command, origin, facts(experts) + "\n",
            f"## {WINS}\n", markdown_table(*win_cells(experts)),
            f"## {RATIOS}\n", markdown_table(*ratio_cells(experts)), NOTES + "\n",
        ]
    )  # fmt: skip


def draw_expert_steps(experts: ExpertSet, path: Path) -> None:
    """Draw how often which T_E occurs, stacked by expert; PNG, PDF or SVG by suffix."""
    with checked_draft(path, PICTURE_SUFFIXES) as draft:
        save_figure(steps_figure(experts), draft)


def steps_figure(experts: ExpertSet) -> Figure:
    """The figure behind `draw_expert_steps`."""
    figure = new_figure(6.4, 3.4)
    axes = figure.add_subplot()
    steps, winner = experts.archive.expert_steps, experts.archive.winner
    width = -(-int(steps.max()) // MOST_BINS)  # whole steps per bar
    edges = np.arange(0, steps.max() + width + 1, width) + 0.5
    winners = [share.name for share in method_shares(experts) if share.wins]
    styles = line_styles(winners)
    axes.hist(
        [steps[winner == experts.methods.index(name)] for name in winners], bins=edges.tolist(), stacked=True,
        color=[styles[name].color for name in winners], label=winners,
    )  # fmt: skip
    axes.set_xlabel("steps of the expert, T_E", color=INK)
    axes.set_ylabel("scenarios", color=INK)
    axes.set_title(f"{len(experts):,} scenarios, median {np.median(steps):g} steps", loc="left", color=INK, fontsize=10)
    axes.grid(axis="y", color=FAINT)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.tight_layout()
    return figure
