"""What an expert database holds: wins per method, duration of experts; tables, Markdown, a histogram of T_E."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from phygail.methods.phygail.experts.dataset import ExpertSet
from phygail.render.style import drawer, label_axes, line_styles, panel_grid
from phygail.render.tables import Column, TextTable, markdown_table, table_cells, terminal_table

WINS, RATIOS = "Who is the expert", "T_E in steps by damage ratio"
NOTES = (
    "The expert of a scenario is the success with the fewest moves; ties go to fewer contacts, then to the order of "
    "the pool. Scenarios that nobody solves are dropped and enter no other figure. Failures of a method count as "
    "its whole step budget. Held-out scenarios are for validation."
)
MOST_BINS = 60
PANEL_IN = (5.4, 2.5)

_WIN_COLUMNS = (
    Column("method", "name"), Column("wins", "wins", ","), Column("share", "share", ".1%"),
    Column("reconnected", "success", ".1%"), Column("mean steps", "mean_steps", ".1f"),
    Column("contacts", "contacts", ".3f"), Column("errors", "raised"),
)  # fmt: skip
_RATIO_COLUMNS = (
    Column("damage", "ratio", ".3g"), Column("scenarios", "scenarios"), Column("held out", "held_out"),
    Column("dropped", "dropped"), Column("mean", "mean", ".1f"), Column("median", "median", ".1f"),
    Column("p90", "p90", ".1f"), Column("max", "most"), Column("most wins", "favorite"),
)  # fmt: skip

Cells = tuple[list[str], list[list[str]]]  # header, rows


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
        ratio: Damage ratio. scenarios: Scenarios kept. held_out: Those for validation. dropped: Those that nobody
            solved.
        mean, median, p90, most: T_E in steps; NaN and 0 without a scenario.
        favorite: The method that wins most often.
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


def win_cells(experts: ExpertSet) -> Cells:
    """Header and rows of the table of methods."""
    return table_cells(_WIN_COLUMNS, map(asdict, method_shares(experts)))


def ratio_cells(experts: ExpertSet) -> Cells:
    """Header and rows of the table of damage ratios."""
    return table_cells(_RATIO_COLUMNS, map(asdict, by_ratio(experts)))


def expert_tables(experts: ExpertSet) -> tuple[TextTable, TextTable]:
    """Both tables for the terminal."""
    return terminal_table(WINS, *win_cells(experts)), terminal_table(RATIOS, *ratio_cells(experts))


def facts(experts: ExpertSet) -> str:
    """Pool, absences and counts in one sentence each."""
    config, dropped = experts.config, sum(experts.about["dropped"].values())
    not_in_pool = [
        f"{what}: {', '.join(config[key])}."
        for key, what in (("left_out", "Left out on request"), ("missing", "Missing because they cannot fly here"))
        if config[key]
    ]
    kept = f"{len(experts):,} scenarios of {config['uavs']} UAVs, {len(experts.held_out):,} held out, {dropped} dropped"
    return " ".join([f"Pool {config['pool']}: {', '.join(config['methods'])}.", *not_in_pool, f"{kept}."])


def expert_markdown(experts: ExpertSet) -> str:
    """The summary as Markdown: how the database was made, wins per method, T_E by damage ratio."""
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


def steps_figure(experts: ExpertSet) -> Figure:
    """Draw a histogram of T_E, stacked by expert."""
    steps, winner = experts.archive.expert_steps, experts.archive.winner
    width = -(-int(steps.max()) // MOST_BINS)  # whole steps per bar
    edges = np.arange(0, steps.max() + width + 1, width) + 0.5
    winners = [share.name for share in method_shares(experts) if share.wins]
    styles = line_styles(winners)
    figure, ((axes,),) = panel_grid(1, 1, PANEL_IN, {name: Patch(color=styles[name].color) for name in winners})
    axes.hist(
        [steps[winner == experts.methods.index(name)] for name in winners], bins=edges.tolist(), stacked=True,
        color=[styles[name].color for name in winners],
    )  # fmt: skip
    title = f"{len(experts):,} scenarios, median {np.median(steps):g} steps"
    label_axes(axes, x="steps of the expert, T_E", y="scenarios", title=title)
    return figure


draw_expert_steps = drawer(steps_figure)
