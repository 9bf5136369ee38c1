"""The swarm seen from above: one map panel, a recovery before and after, one image of a running episode."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon, Rectangle
from matplotlib.text import Annotation
from matplotlib.transforms import ScaledTranslation
from scipy.spatial import ConvexHull

from phygail.config import InputError
from phygail.render.style import (
    FAILURE,
    FAINT,
    INK,
    LOST,
    MAP,
    PICTURE_SUFFIXES,
    POINTS_PER_INCH,
    SOFT,
    STAR,
    SUCCESS,
    add_panel,
    checked_draft,
    new_figure,
    save_figure,
    subnet_colors,
)
from phygail.swarm.links import Links, find_links
from phygail.swarm.scenario import Scenario
from phygail.swarm.simulator import Episode, Meter, SwarmState, initial_state
from phygail.swarm.tree import bound_for
from phygail.swarm.world import Obstacle

MOST_LINKS = 60_000  # if there are more, every k-th is drawn: at that density one sees no difference
VIEW_SAMPLES = 16  # states per flight that the view must hold
LONGEST_NAME = 30  # letters of a method's name in a title
UPPER_PT, LOWER_PT = 18.5, 4.5  # baselines of the two lines of a title above its panel
RASTER_ABOVE = 5_000  # lines or dots per panel; beyond it vector files hold the map as an image to stay small

PANEL_IN = 3.3  # side of a map panel
GAP_IN = 0.18  # between panels
TITLE_IN = 0.48  # above each panel
FOOT_IN = 0.38  # note below the legend
LEGEND_IN = 0.2  # each line of the legend

IMAGE_SIDE_IN, IMAGE_TITLE_IN, IMAGE_GAP_IN = 4.8, 0.48, 0.16  # map, room for its title, margin
IMAGE_DPI = 100


@dataclass(frozen=True)
class Scene:
    """What all panels of one scenario share.

    Attributes:
        scenario: The case.
        links: The network right after the damage.
        colors: (n, 3) RGB of each alive UAV, by its subnet right after the damage.
        corner: (2,) m, lower left corner of the map.
        view: (left, right, bottom, top) m, square, holds the map and everywhere the UAVs fly.
        dot_pt, line_pt: Diameter of a UAV and width of a link in points.
    """

    scenario: Scenario
    links: Links
    colors: np.ndarray
    corner: np.ndarray
    view: tuple[float, float, float, float]
    dot_pt: float
    line_pt: float

    @property
    def subnet(self) -> np.ndarray:
        """(n,) int, label of each alive UAV's subnet right after the damage."""
        return self.links.subnet


def make_scene(flights: Mapping[str, Episode], panel_in: float) -> Scene:
    """Check that the flights can be shown side by side and settle what their panels share."""
    scenario = _shared_scenario(flights)
    links = initial_state(scenario).links
    corner = _map_corner(scenario)
    flown = [state.positions for episode in flights.values() for state in _sample(episode, VIEW_SAMPLES)]
    points = np.vstack([scenario.layout, scenario.center[None], corner[None], corner[None] + scenario.width_m, *flown])
    middle, half = _square(points[np.isfinite(points).all(axis=1)])
    spacing = panel_in * POINTS_PER_INCH / np.sqrt(scenario.uavs)
    return Scene(
        scenario, links, shaded(subnet_colors(links.subnet)[links.subnet], initial_state(scenario)), corner,
        (middle[0] - half, middle[0] + half, middle[1] - half, middle[1] + half),
        dot_pt=float(np.clip(0.27 * spacing, 0.9, 7.5)), line_pt=float(np.clip(0.055 * spacing, 0.25, 1.6)),
    )  # fmt: skip


def shaded(colors: np.ndarray, state: SwarmState) -> np.ndarray:
    """(n, 3) RGB, the lighter the higher, where UAVs fly at different heights; from the lowest at the start on."""
    if state.flight is None or state.flight.heights is None:
        return colors
    start = np.array(state.scenario.world.altitude)[state.scenario.alive]
    light = 0.65 * (state.flight.heights[state.members] - start.min()) / max(float(np.ptp(start)), 1e-9)
    return colors + (1.0 - colors) * light[:, None]


def rows_at_start(state: SwarmState) -> np.ndarray:
    """(n,) int, the row that each UAV of a state had right after the damage."""
    return np.searchsorted(state.scenario.alive, state.members)


def places_of_all(state: SwarmState) -> np.ndarray:
    """(n, 2) m, places of all UAVs that were alive right after the damage; the lost are where they fell."""
    return state.positions if state.flight is None else state.flight.places[state.scenario.alive]


def grid_shape(panels: int) -> tuple[int, int]:
    """(columns, rows): up to four panels in one row, then two rows, at most five columns."""
    columns = panels if panels <= 4 else min(5, math.ceil(panels / 2))
    return columns, math.ceil(panels / columns)


def _shared_scenario(flights: Mapping[str, Episode]) -> Scenario:
    if not flights:
        raise InputError("no flight to draw: give at least one method")
    scenario = next(iter(flights.values())).scenario
    for name, episode in flights.items():
        if not episode.states:
            raise InputError(f"the flight of {name!r} was not recorded: fly it with record=True")
        other = episode.scenario
        if not (np.array_equal(other.layout, scenario.layout) and np.array_equal(other.damaged, scenario.damaged)):
            raise InputError(
                f"the flight of {name!r} is of another scenario ({other.id!r}): draw one scenario at a time"
            )
    return scenario


def _map_corner(scenario: Scenario) -> np.ndarray:
    """(2,) m, the corner of the map: the origin, or that of the bounding box for a layout that came without a map."""
    low, high = scenario.layout.min(axis=0), scenario.layout.max(axis=0)
    if (low >= 0).all() and (high <= scenario.width_m).all():
        return np.zeros(2)
    return (low + high - scenario.width_m) / 2


def _sample(episode: Episode, most: int) -> list[SwarmState]:
    """The first, the last and evenly spread states between, at most `most`."""
    chosen = np.unique(np.linspace(0, len(episode.states) - 1, most).round().astype(int))
    return [episode.states[k] for k in chosen]


def _square(points: np.ndarray) -> tuple[np.ndarray, float]:
    """Middle and half side of the square around `points`, with a margin."""
    low, high = points.min(axis=0), points.max(axis=0)
    return (low + high) / 2, max(float((high - low).max()) * 0.515, 1.0)


# --- words -----------------------------------------------------------------------------------------------------------


def plural(count: int, noun: str) -> str:
    """'1 subnet', '2 subnets', '1,000 steps'."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def damage_words(scene: Scene) -> str:
    """'200 UAVs, 100 lost: 23 subnets'."""
    scenario = scene.scenario
    return f"{plural(scenario.uavs, 'UAV')}, {len(scenario.damaged):,} lost: {plural(scene.links.count, 'subnet')}"


def outcome_words(episode: Episode) -> str:
    """'67 steps (6.7 s), 3.9 x bound', or what is still missing."""
    if not episode.terminated:
        left = episode.states[-1].links.count
        return f"not reconnected in {plural(episode.steps, 'step')}: {plural(left, 'subnet')}"
    if episode.steps == 0:
        return "already connected: 0 steps"
    physics = episode.scenario.physics
    seconds = episode.steps * physics.step_s
    bound = bound_for(episode.scenario)
    over = f", {episode.steps / bound:.1f} x bound" if bound else ""
    return f"{plural(episode.steps, 'step')} ({seconds:.1f} s){over}"


# --- drawing ---------------------------------------------------------------------------------------------------------


def prepare_panel(axes: Axes, scene: Scene) -> Line2D:
    """An empty map: its border, the damaged and the center (returned: animations draw it above what moves)."""
    left, right, bottom, top = scene.view
    axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    axes.axis("off")
    width = scene.scenario.width_m
    border = Rectangle(
        (scene.corner[0], scene.corner[1]), width, width, facecolor=MAP, edgecolor=FAINT, linewidth=1.0, zorder=0
    )
    axes.add_patch(border)
    add_obstacles(axes, scene.scenario)
    spots = scene.scenario.layout[scene.scenario.damaged]
    size = (0.72 * scene.dot_pt) ** 2
    crosses = axes.scatter(spots[:, 0], spots[:, 1], s=size, c=LOST, marker="x", linewidths=scene.line_pt, zorder=1)
    crosses.set_rasterized(len(spots) > RASTER_ABOVE)
    x, y = scene.scenario.center
    star = _star([x], [y], max(6.0, 1.9 * scene.dot_pt))
    axes.add_line(star)
    return star


def add_obstacles(axes: Axes, scenario: Scenario) -> None:
    """Obstacles as gray regions, those that block radio darker and hatched."""
    for obstacle in scenario.world.obstacles:
        look: dict[str, Any] = {"facecolor": FAINT if obstacle.radio else LOST, "edgecolor": SOFT, "linewidth": 0.8,
                                "zorder": 0.5, "hatch": None if obstacle.radio else "////"}  # fmt: skip
        axes.add_patch(Polygon(_outline(obstacle), closed=True, **look))


def _outline(obstacle: Obstacle) -> np.ndarray:
    """(k, 2) m, the rim of an obstacle."""
    corners = np.array(obstacle.corners)
    if obstacle.radius_m == 0:
        return corners
    angle = np.linspace(0, 2 * np.pi, 65)[:-1]
    ring = obstacle.radius_m * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    points = (corners[:, None] + ring).reshape(-1, 2)
    return points[ConvexHull(points).vertices]


def add_fallen(axes: Axes, scene: Scene, state: SwarmState) -> None:
    """UAVs that were lost in flight, where they fell."""
    if state.flight is None:
        return
    spots = state.flight.places[state.flight.died > 0]
    size = (0.8 * scene.dot_pt) ** 2
    axes.scatter(spots[:, 0], spots[:, 1], s=size, c=FAILURE, marker="x", linewidths=scene.line_pt, zorder=3.5)


def add_outages(axes: Axes, scene: Scene, state: SwarmState) -> LineCollection:
    """Links that are out, as dashed lines."""
    look: dict[str, Any] = {"colors": SOFT, "linestyles": "dashed", "alpha": 0.5, "zorder": 1.8}
    lines = LineCollection(outages(state), linewidths=0.7 * scene.line_pt, **look)
    axes.add_collection(lines, autolim=False)
    return lines


def outages(state: SwarmState) -> list[np.ndarray]:
    """(2, 2) m each, the ends of the pairs within the radio range whose link is out."""
    if state.flight is None or state.scenario.world.links.outage_share == 0:
        return []
    near = find_links(state.positions, state.scenario.physics.range_m).pairs
    linked = set(map(tuple, state.links.pairs.tolist()))
    return [state.positions[pair] for pair in near.tolist() if tuple(pair) not in linked]


def _star(x: list[float], y: list[float], size_pt: float) -> Line2D:
    return Line2D(
        x, y, marker="*", markersize=min(size_pt, 12.0), markerfacecolor=STAR, markeredgecolor=INK,
        markeredgewidth=0.7, linestyle="none", zorder=5,
    )  # fmt: skip


def link_segments(links: Links, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """((m, 2, 2) m end points, (m, 2) rows) of the links to draw: all, or an even sample of very many."""
    pairs = links.pairs[:: max(1, -(-len(links.pairs) // MOST_LINKS))]
    return positions[pairs], pairs


def link_alpha(count: int, alive: int) -> float:
    """Links fade as they become many per UAV, so that a dense tangle does not hide the UAVs."""
    return float(np.clip(1.1 / np.sqrt(max(1.0, count / max(1, alive))), 0.08, 0.75))


def add_links(axes: Axes, scene: Scene, state: SwarmState) -> None:
    """Links in the color of their subnet after the damage; those that join two such subnets dark and on top."""
    links, positions = state.links, state.positions
    segments, pairs = link_segments(links, positions)
    pairs = rows_at_start(state)[pairs]
    inside = scene.subnet[pairs[:, 0]] == scene.subnet[pairs[:, 1]]
    alpha = link_alpha(len(links.pairs), len(positions))
    many = len(segments) > RASTER_ABOVE
    axes.add_collection(
        LineCollection(
            segments[inside], colors=scene.colors[pairs[inside, 0]], linewidths=scene.line_pt, alpha=alpha,
            zorder=2, rasterized=many,
        ), autolim=False,
    )  # fmt: skip
    axes.add_collection(
        LineCollection(
            segments[~inside], colors=INK, linewidths=1.15 * scene.line_pt, alpha=min(0.85, 1.3 * alpha), zorder=3,
            rasterized=many,
        ), autolim=False,
    )  # fmt: skip


def add_dots(axes: Axes, scene: Scene, state: SwarmState) -> PathCollection:
    """The alive, in the color of their subnet after the damage."""
    positions = state.positions
    dots = axes.scatter(
        positions[:, 0], positions[:, 1], s=scene.dot_pt**2, c=scene.colors[rows_at_start(state)], zorder=4,
        edgecolors="white",
        linewidths=0.12 * scene.dot_pt if scene.dot_pt > 2 else 0.0,
    )  # fmt: skip
    dots.set_rasterized(len(positions) > RASTER_ABOVE)
    return dots


def add_trails(axes: Axes, scene: Scene, episode: Episode) -> None:
    """Flown paths: thin lines that grow from faint (start) to strong (end)."""
    alive = len(scene.colors)
    pieces = int(np.clip(30_000 // alive, 6, 40))
    paths = np.stack([places_of_all(state) for state in _sample(episode, pieces + 1)])  # (K, n, 2) m
    segments = np.stack([paths[:-1], paths[1:]], axis=2).reshape(-1, 2, 2)
    fade = np.linspace(0.12, 0.6, len(paths) - 1)
    colors = np.concatenate([np.tile(scene.colors, (len(fade), 1)), np.repeat(fade, alive)[:, None]], axis=1)
    trails = LineCollection(
        list(segments), colors=colors, linewidths=0.8 * scene.line_pt, zorder=1.5, capstyle="butt",
        rasterized=len(segments) > RASTER_ABOVE,
    )  # fmt: skip
    axes.add_collection(trails, autolim=False)


def title_line(axes: Axes, words: str, height_pt: float, size: float, color: str) -> Annotation:
    """A line of text above the left end of a panel."""
    return axes.annotate(
        words, (0.015, 1.0), xycoords="axes fraction", xytext=(0, height_pt), textcoords="offset points",
        fontsize=size, color=color, va="baseline", parse_math=False,
    )  # fmt: skip


def add_title(axes: Axes, bold: str, plain: str, color: str = SOFT) -> None:
    """Two lines above a panel: what it is, and (in `color`) what happened."""
    name = bold if len(bold) <= LONGEST_NAME else bold[: LONGEST_NAME - 1] + "…"
    title_line(axes, name, UPPER_PT, 10.0, INK).set_fontweight("bold")
    title_line(axes, plain, LOWER_PT, 8.8, color)


def add_range_bar(figure: Figure, axes: Axes, scene: Scene) -> None:
    """How far the radio reaches, in words and to scale, above the right end of a panel."""
    axes.annotate(
        f"radio range {scene.scenario.physics.range_m:g} m", (0.985, 1.0), xycoords="axes fraction",
        xytext=(0, UPPER_PT), textcoords="offset points", fontsize=8.0, color=SOFT, ha="right", va="baseline",
    )  # fmt: skip
    left, right, _, _ = scene.view
    share = scene.scenario.physics.range_m / (right - left)
    if share > 0.3:  # it would run into the title
        return
    level = ScaledTranslation(0, (LOWER_PT + 3) / POINTS_PER_INCH, figure.dpi_scale_trans)
    axes.plot(
        [0.985 - share, 0.985], [1, 1], transform=axes.transAxes + level, color=INK, linewidth=1.2, clip_on=False,
        marker="|", markersize=5, markeredgewidth=1.2,
    )  # fmt: skip


def add_legend(figure: Figure, scene: Scene, rows: int) -> None:
    """The foot of the figure, in `rows` lines and a note: what the signs and the bound mean."""
    blue = "#0072B2"
    entries: list[tuple[str, Artist]] = [
        ("alive, colored by subnet", Line2D([], [], color=blue, linestyle="none", marker="o", markersize=5)),
        ("damaged", Line2D([], [], color=LOST, marker="x", markersize=5, linestyle="none", markeredgewidth=1.2)),
        ("center", _star([], [], 9.0)),
        ("link", Line2D([], [], color=blue, linewidth=1.2, alpha=0.75)),
        ("new link between subnets", Line2D([], [], color=INK, linewidth=1.4)),
        ("flown path", Line2D([], [], color=blue, linewidth=0.9, alpha=0.4)),
    ]
    bound = bound_for(scene.scenario)
    fewest = f"{plural(bound or 0, 'step')} ({(bound or 0) * scene.scenario.physics.step_s:.1f} s)"
    note = f"bound: no method can reconnect this swarm in fewer than {fewest}" if bound else "already one network"
    world = scene.scenario.world
    signs = ((world.events, "red: lost in flight"), (world.links.outage_share, "dashed: link out"),
             (world.altitude, "the lighter, the higher"))  # fmt: skip
    note = "; ".join(["no lower bound is known in this world" if bound is None else note, *(s for w, s in signs if w)])
    height = figure.get_figheight()
    figure.text(0.5, 0.09 / height, note, ha="center", va="bottom", fontsize=8.0, color=SOFT)
    order = [k for column in range(6 // rows) for k in range(column, 6, 6 // rows)]  # legends fill column by column
    figure.legend(
        [entries[k][1] for k in order], [entries[k][0] for k in order], loc="lower center", ncols=6 // rows,
        bbox_to_anchor=(0.5, 0.2 / height), frameon=False, fontsize=8.5, labelcolor=INK, handletextpad=0.5,
        columnspacing=1.8, borderaxespad=0.4,
    )  # fmt: skip


def draw_recovery(flights: Mapping[str, Episode], path: Path) -> None:
    """Draw one scenario right after the damage, then the moment each method reconnected it (or gave up).

    UAVs keep the color of their subnet after the damage, so one sees where each subnet flew.

    Args:
        flights: Recorded episodes of one scenario by name of the method.
        path: PNG, PDF or SVG by suffix; written whole or not at all.
    """
    with checked_draft(path, PICTURE_SUFFIXES) as draft:
        save_figure(recovery_figure(flights), draft)


def recovery_figure(flights: Mapping[str, Episode]) -> Figure:
    """The figure behind `draw_recovery`."""
    scene = make_scene(flights, PANEL_IN)
    columns, rows = grid_shape(len(flights) + 1)
    legend_rows = 1 if columns > 2 else 2
    foot = FOOT_IN + legend_rows * LEGEND_IN
    height = rows * (PANEL_IN + TITLE_IN) + (rows - 1) * GAP_IN + foot
    figure = new_figure(columns * PANEL_IN + (columns + 1) * GAP_IN, height)
    for k, (name, episode) in enumerate([("", None), *flights.items()]):
        left = GAP_IN + (k % columns) * (PANEL_IN + GAP_IN)
        top = height - TITLE_IN - (k // columns) * (PANEL_IN + TITLE_IN + GAP_IN)
        axes = add_panel(figure, left, top - PANEL_IN, PANEL_IN, PANEL_IN)
        prepare_panel(axes, scene)
        if episode is None:
            first = initial_state(scene.scenario)
            add_links(axes, scene, first)
            add_dots(axes, scene, first)
            add_title(axes, "right after the damage", damage_words(scene))
            add_range_bar(figure, axes, scene)
        else:
            add_trails(axes, scene, episode)
            last = episode.states[-1]
            add_fallen(axes, scene, last)
            add_outages(axes, scene, last)
            add_links(axes, scene, last)
            add_dots(axes, scene, last)
            add_title(axes, name, outcome_words(episode), SOFT if episode.terminated else FAILURE)
    add_legend(figure, scene, legend_rows)
    return figure


def draw_image(state: SwarmState) -> np.ndarray:
    """(height, width, 3) uint8, always of the same size: the map right now, UAVs in the color of their first subnet."""
    first = initial_state(state.scenario)
    flight = Episode(
        state.scenario, state.terminated, state.truncated, state.step, Meter(first).result(), 0.0, 0.0, (first, state)
    )
    scene = make_scene({"": flight}, IMAGE_SIDE_IN)  # the view holds the map, and grows when a UAV flies out of it
    figure = new_figure(IMAGE_SIDE_IN + 2 * IMAGE_GAP_IN, IMAGE_SIDE_IN + IMAGE_TITLE_IN + IMAGE_GAP_IN, IMAGE_DPI)
    axes = add_panel(figure, IMAGE_GAP_IN, IMAGE_GAP_IN, IMAGE_SIDE_IN, IMAGE_SIDE_IN)
    prepare_panel(axes, scene)
    add_links(axes, scene, state)
    add_dots(axes, scene, state)
    words = f"step {state.step:,} of {state.scenario.budget_steps:,}"
    network = "one network" if state.terminated else plural(state.links.count, "subnet")
    add_title(axes, words, network, SUCCESS if state.terminated else SOFT)
    canvas = cast(Any, figure.canvas)  # matplotlib leaves the methods of its canvas without types
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
