"""Read an expert database: frames for the discriminator, scenarios with T_E to train in, and a report for people."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from phygail.config import LINK_TOLERANCE_M, InputError
from phygail.learning.worlds import ExpertCase
from phygail.methods.phygail.experts.database import Archive, read_archive
from phygail.methods.phygail.graph import PAPER, Graph, GraphSpec
from phygail.methods.phygail.graph_batch import perceive_batch
from phygail.render.style import drawer, label_axes, line_styles, panel_grid
from phygail.render.tables import Column, TextTable, markdown_table, table_cells, terminal_table
from phygail.swarm.batch import lowest_rows
from phygail.swarm.scenario import D4, Scenario, transform
from phygail.swarm.tree import bound_steps

ELEMENTS = np.stack(D4)  # (8, 2, 2); the first is the identity

FRAME_INTERVAL = 2  # every second frame of a trajectory (METHODS 4.4)


def turn_vectors(vectors: np.ndarray, elements: np.ndarray) -> np.ndarray:
    """Velocities (B, n, 2) of B frames, turned by D4[elements[b]] each."""
    return np.einsum("bij,bnj->bni", ELEMENTS[elements], vectors)


def turn_points(points: np.ndarray, centers: np.ndarray, elements: np.ndarray) -> np.ndarray:
    """Positions (B, n, 2) m of B frames, turned about their centers (B, 2) m."""
    return turn_vectors(points - centers[:, None], elements) + centers[:, None]


def eight_variants(scenario: Scenario) -> list[Scenario]:
    """The scenario in all eight positions; the first is the scenario itself but for its id."""
    return [transform(scenario, element) for element in range(len(D4))]


@dataclass(frozen=True, eq=False)
class FrameBatch:
    """B frames of up to n alive and k damaged UAVs; padding is zero. Names are those of `perceive_batch`.

    Attributes:
        positions: (B, n, 2) m, at t.
        velocities: (B, n, 2) m/s, executed at t - 1; zero at t = 0. Never the action at t, which would give the label
            away (METHODS F7).
        actions: (B, n, 2) m/s, executed at t.
        alive: (B, n) bool, real rows.
        spots: (B, k, 2) m, where the damaged are. damaged: (B, k) bool, real spots.
        center: (B, 2) m. width_m: (B,) m. range_m: (B,) m. speed_mps: (B,) m/s.
        scenario: (B,) int, within the archive. step: (B,) int, t.
    """

    positions: np.ndarray
    velocities: np.ndarray
    actions: np.ndarray
    alive: np.ndarray
    spots: np.ndarray
    damaged: np.ndarray
    center: np.ndarray
    width_m: np.ndarray
    range_m: np.ndarray
    speed_mps: np.ndarray
    scenario: np.ndarray
    step: np.ndarray

    def __len__(self) -> int:
        return len(self.alive)

    def graph(self, spec: GraphSpec = PAPER) -> Graph:
        """What the UAVs see, one receiver per alive UAV, frame by frame."""
        return perceive_batch(
            self.positions, self.velocities, self.alive, self.spots, self.damaged, self.center, self.width_m,
            self.range_m, self.speed_mps, spec, subnet=self._subnet() if spec.recenter else None,
        )  # fmt: skip

    @property
    def commands(self) -> np.ndarray:
        """(receivers, 2) float32, executed velocity / v_max in the order of the graph's receivers."""
        return (self.actions / self.speed_mps[:, None, None])[self.alive].astype(np.float32)

    def _subnet(self) -> np.ndarray:
        """(B, n) int, the lowest row of every row's subnet."""
        offsets = self.positions[:, :, None] - self.positions[:, None]
        linked = np.hypot(offsets[..., 0], offsets[..., 1]) <= self.range_m[:, None, None] + LINK_TOLERANCE_M
        linked &= self.alive[:, :, None] & self.alive[:, None]
        return lowest_rows(linked.transpose(1, 2, 0)).T


@dataclass(frozen=True, eq=False)
class ExpertSet:
    """Demonstrations, all of a database or some of it. Frame f is a state and what the expert did in it.

    Attributes:
        archive: The whole database.
        about: Attributes of the file: format, versions, command, config, dropped, digest.
        members: (S,) int, the scenarios of the archive that belong to this set.
        interval: Frames t = 0, interval, 2 interval, ... < T_E are used.
    """

    archive: Archive
    about: dict[str, Any]
    members: np.ndarray
    interval: int = FRAME_INTERVAL

    def __post_init__(self) -> None:
        if self.interval < 1:
            raise InputError(f"frame interval {self.interval}: choose at least 1")

    @classmethod
    def open(cls, path: str | Path, *, interval: int = FRAME_INTERVAL) -> ExpertSet:
        """Read a database, all of it, training and held-out scenarios alike."""
        archive, about = read_archive(Path(path))
        return cls(archive, about, np.arange(len(archive)), interval)

    @property
    def training(self) -> ExpertSet:
        """The scenarios to learn from."""
        return replace(self, members=self.members[~self.archive.held_out[self.members]])

    @property
    def held_out(self) -> ExpertSet:
        """The scenarios for validation, the same in the databases of all pools."""
        return replace(self, members=self.members[self.archive.held_out[self.members]])

    @property
    def config(self) -> dict[str, Any]:
        """What the database was built from (`Recipe.config`)."""
        return dict(self.about["config"])

    @property
    def methods(self) -> tuple[str, ...]:
        """Who flew, in the order of the pool."""
        return tuple(self.config["methods"])

    def __len__(self) -> int:
        """Number of scenarios."""
        return len(self.members)

    # --- scenarios ---------------------------------------------------------------------------------------------------

    @property
    def expert_steps(self) -> np.ndarray:
        """(S,) int, T_E."""
        return self.archive.expert_steps[self.members]

    @property
    def flying(self) -> np.ndarray:
        """(S,) int, the alive of every scenario."""
        return self.archive.alive[self.members]

    @cached_property
    def scenarios(self) -> tuple[Scenario, ...]:
        """The scenarios, in order."""
        return tuple(self.archive.scenario(s) for s in self.members)

    def cases(self, *, augment: bool = False) -> list[ExpertCase]:
        """Every scenario with its T_E; augmented, each in all eight positions."""
        return [
            ExpertCase(variant, int(steps))
            for scenario, steps in zip(self.scenarios, self.expert_steps, strict=True)
            for variant in (eight_variants(scenario) if augment else [scenario])
        ]

    def draw_case(self, rng: np.random.Generator, *, augment: bool = True) -> ExpertCase:
        """A random scenario, in a random one of the eight positions."""
        k = int(self._some(rng, 1, len(self))[0])
        return self.case(k, int(rng.integers(len(D4))) if augment else None)

    def case(self, k: int, element: int | None = None) -> ExpertCase:
        """Scenario k of this set, turned by D4[element] if given."""
        scenario = self.scenarios[k] if element is None else transform(self.scenarios[k], element)
        return ExpertCase(scenario, int(self.expert_steps[k]), k, element)

    def bound(self, k: int) -> int:
        """Lower bound on the steps of scenario k; computed once."""
        if k not in self._bounds:
            self._bounds[k] = bound_steps(self.scenarios[k].spots, self.scenarios[k].physics)
        return self._bounds[k]

    @cached_property
    def _bounds(self) -> dict[int, int]:
        return {}

    def trajectory(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """(T_E + 1, n, 2) m and (T_E, n, 2) m/s, what the expert flew on scenario k of this set."""
        return self.archive.trajectory(int(self.members[k]))

    # --- frames ------------------------------------------------------------------------------------------------------

    @cached_property
    def _frames(self) -> tuple[np.ndarray, np.ndarray]:
        """(F,) int and (F,) int: scenario of the archive and t of every frame."""
        count = -(-self.expert_steps // self.interval)  # rounded up: t = 0 always counts
        first = np.repeat(np.cumsum(count) - count, count)
        return np.repeat(self.members, count), (np.arange(count.sum()) - first) * self.interval

    @property
    def frame_count(self) -> int:
        """Number of frames F."""
        return len(self._frames[0])

    @cached_property
    def uavs_per_frame(self) -> float:
        """Mean number of alive: how many frames make as many nodes as a batch of the policy."""
        return float(self.archive.alive[self._frames[0]].mean()) if self.frame_count else 0.0

    def sample(self, rng: np.random.Generator, frames: int, *, augment: bool = True) -> FrameBatch:
        """`frames` frames drawn uniformly with replacement, each turned by a random element of D4."""
        numbers = self._some(rng, frames, self.frame_count)
        return self.frames(numbers, rng.integers(len(D4), size=frames) if augment else None)

    def frames(self, numbers: np.ndarray, elements: np.ndarray | None = None) -> FrameBatch:
        """The frames `numbers` ((B,) int), turned about their centers by D4[`elements`] ((B,) int) if given.

        A frame never holds its own action: the velocity feature at t is what was executed at t - 1, zero at t = 0.
        """
        table, scenario, step = self.archive, self._frames[0][numbers], self._frames[1][numbers]
        alive, starts = table.alive[scenario], {name: first[scenario] for name, first in table.starts.items()}
        widest = int(alive.max(initial=0))
        positions, mask = _padded(table.positions, starts["positions"] + step * alive, alive, widest)
        actions, _ = _padded(table.velocities, starts["velocities"] + step * alive, alive, widest)
        # At t = 0 there is no flight yet: zero rows to copy, and the padding is zero.
        before = starts["velocities"] + (step - 1) * alive
        velocities, _ = _padded(table.velocities, before, np.where(step > 0, alive, 0), widest)
        lost = table.lost[scenario]
        spots, damaged = _padded(table.spots, starts["damaged"], lost, int(lost.max(initial=0)))
        center = table.center[scenario]
        if elements is not None:
            positions = turn_points(positions, center, elements) * mask[..., None]
            spots = turn_points(spots, center, elements) * damaged[..., None]
            velocities, actions = turn_vectors(velocities, elements), turn_vectors(actions, elements)
        return FrameBatch(
            positions, velocities, actions, mask, spots, damaged, center, table.width_m[scenario],
            table.range_m[scenario], table.speed_mps[scenario], scenario, step,
        )  # fmt: skip

    @staticmethod
    def _some(rng: np.random.Generator, size: int, count: int) -> np.ndarray:
        if not count:
            raise InputError("there is nothing to draw from: build the expert database with more cases per ratio")
        return rng.integers(count, size=size)


def _padded(flat: np.ndarray, first: np.ndarray, count: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """(B, width, 2) and (B, width) bool: rows first[b] .. first[b] + count[b] - 1 of `flat`, then zeros."""
    place = np.arange(width)
    mask = place < count[:, None]
    rows = np.where(mask, first[:, None] + place, 0)
    return np.where(mask[..., None], flat[rows], 0.0), mask


# --- report: wins per method, duration of experts; tables, Markdown, a histogram of T_E ------------------------------

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
        ratio: Damage ratio. scenarios: Scenarios kept. held_out: Those for validation. dropped: Those that no method
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
