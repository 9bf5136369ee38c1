"""The look of all pictures: colors, markers, panels, and files that are written whole.

Figures are built from `Figure` objects on the Agg canvas, never through pyplot: no display, no global state, safe in
threads. Colors are those of Okabe and Ito and of Tol, which stay apart under the common color deficiencies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import ArrayLike

from phygail.config import InputError
from phygail.files import whole_file

INK = "#1F2933"  # text
SOFT = "#66717D"  # second-rank text
FAINT = "#DDE2E7"  # grids and borders of maps
AXIS = "#B8C0C8"
LOST = "#A9B1BA"  # the damaged
MAP = "#FBFCFD"  # ground of a map
STAR = "#FFD23F"  # the center
SUCCESS = "#00875A"
FAILURE = "#B3261E"

POINTS_PER_INCH = 72.0
PICTURE_DPI = 200
LEGEND_IN = 0.2  # each line of a legend
AXIS_IN = 0.55  # below panels, for the axis and its name
MOST_COLUMNS = 3  # panels beside each other: more would make text too small where a page is 800 pixels wide

# Large subnets and the lines of a training get these, most distinct first ...
BOLD = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#8E4FA8", "#56B4E9", "#CC79A7", "#8A7A00")
# ... and all further ones share these.
_MUTED = ("#5B8DB8", "#C08A5A", "#6FA58A", "#B56A6A", "#8C86B8", "#A39A52", "#B987A8", "#5FA3A8", "#8A8F98", "#9C7B5E")


@dataclass(frozen=True)
class LineStyle:
    """How one method looks in every chart."""

    color: str
    marker: str
    hollow: bool = False


METHOD_STYLES: dict[str, LineStyle] = {
    "reach-evolved": LineStyle("#D55E00", "o"),
    "phygail": LineStyle("#B8860B", "o"),
    "phygail-plus": LineStyle("#6B8E23", "o"),
    "phygail-taught": LineStyle("#E69F00", "o", hollow=True),
    "convex": LineStyle("#1F2933", "D"),
    "reach": LineStyle("#0072B2", "s"),
    "sidr": LineStyle("#56B4E9", "^"),
    "cr-ma": LineStyle("#8E4FA8", "p"),
    "gdr-ts": LineStyle("#8A7A00", "h"),
    "cr-mgc": LineStyle("#009E73", "X"),
    "demd": LineStyle("#882255", "d"),
    "hero": LineStyle("#CC79A7", "P"),
    "center-fly": LineStyle("#7F5539", "v"),
    "bridge": LineStyle("#D41159", "*"),
    "vcr": LineStyle("#332288", "s", hollow=True),
    "ledir": LineStyle("#44AA99", "^", hollow=True),
    "dcrmf": LineStyle("#AA4466", "D", hollow=True),
    "rnfr": LineStyle("#117733", "v", hollow=True),
    "cist": LineStyle("#4477AA", "p", hollow=True),
    "hpc-cr": LineStyle("#999933", "<", hollow=True),
}

_FURTHER = tuple(
    LineStyle(color, marker, hollow=True)
    for color, marker in zip(
        ("#EE7733", "#555555", "#0B5345", "#7D3C98", "#B9770E", "#1A5276", "#6E2C00", "#2E4053"),
        "s^Dvp<>d",
        strict=True,
    )
)


def line_styles(names: Iterable[str]) -> dict[str, LineStyle]:
    """A style for each name, known methods first and in fixed order; others get further colors in order of name."""
    wanted = set(names)
    styles = {name: style for name, style in METHOD_STYLES.items() if name in wanted}
    others = sorted(wanted - set(styles))
    return styles | {name: _FURTHER[k % len(_FURTHER)] for k, name in enumerate(others)}


def subnet_colors(subnet: np.ndarray) -> np.ndarray:
    """(count, 3) RGB, one color per subnet label; the largest subnets get the most distinct ones.

    Args:
        subnet: (n,) int, labels 0..count-1.
    """
    sizes = np.bincount(subnet)
    colors = np.empty((len(sizes), 3))
    for rank, label in enumerate(np.argsort(-sizes, kind="stable")):
        name = BOLD[rank] if rank < len(BOLD) else _MUTED[(rank - len(BOLD)) % len(_MUTED)]
        colors[label] = to_rgb(name)
    return colors


# --- figures and files -----------------------------------------------------------------------------------------------


def new_figure(width_in: float, height_in: float, dpi: float = PICTURE_DPI) -> Figure:
    """An empty white figure on its own Agg canvas."""
    figure = Figure(figsize=(width_in, height_in), dpi=dpi, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def add_panel(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Axes at a place given in inches from the lower left corner."""
    total_width, total_height = figure.get_size_inches()
    return figure.add_axes((left / total_width, bottom / total_height, width / total_width, height / total_height))


def panel_grid(
    rows: int,
    columns: int,
    panel_in: tuple[float, float],
    legend: Mapping[str, Artist],
    *,
    gap_in: tuple[float, float] = (0.45, 0.16),
    head_in: float = 0.32,
    entry_in: float = 1.25,
    most_columns: int = MOST_COLUMNS,
) -> tuple[Figure, list[list[Axes]]]:
    """A figure of equal panels with one legend below, and its panels: [column][row], rows from the top.

    Args:
        rows: Panels below each other. columns: Panels beside each other.
        panel_in: Width and height of a panel. legend: What each name looks like.
        gap_in: Between columns and between rows. head_in: Above the panels, for titles.
        entry_in: Width of a legend entry.
        most_columns: Further columns stand below the first ones, all their rows together.
    """
    (wide, high), (gap, between), left = panel_in, gap_in, 0.68
    beside, blocks = min(columns, most_columns), math.ceil(columns / most_columns)
    width = left + beside * (wide + gap) - gap + 0.18
    block = head_in + rows * (high + between) - between + AXIS_IN  # with its titles and the names of its axes
    per_row = max(1, int((width - 0.2) // entry_in))
    height = blocks * block + LEGEND_IN * math.ceil(len(legend) / per_row)
    figure = new_figure(width, height)
    tops = [height - k // beside * block - head_in for k in range(columns)]
    panels = [
        [
            add_panel(figure, left + k % beside * (wide + gap), top - row * between - (row + 1) * high, wide, high)
            for row in range(rows)
        ]
        for k, top in enumerate(tops)
    ]
    for axes in figure.axes:
        dress_axes(axes)
    if legend:
        drawn = figure.legend(
            list(legend.values()), list(legend), loc="lower center", ncols=min(per_row, len(legend)), frameon=False,
            fontsize=8.5, labelcolor=INK, handletextpad=0.6, columnspacing=1.6, borderaxespad=0.3,
        )  # fmt: skip
        for text in drawn.get_texts():
            text.set_parse_math(False)
    return figure, panels


def dress_axes(axes: Axes) -> None:
    """Light grid, no box, small gray ticks."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(AXIS)
    axes.grid(visible=True, color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=SOFT, labelsize=8, length=3, width=0.6, color=AXIS)


def label_axes(axes: Axes, *, x: str = "", y: str = "", title: str = "") -> None:
    """Names of both axes and a title at the left, in the sizes of all figures."""
    if x:
        axes.set_xlabel(x, fontsize=8.5, color=SOFT)
    if y:
        axes.set_ylabel(y, fontsize=9, color=INK)
    if title:
        axes.set_title(title, loc="left", fontsize=10, fontweight="bold", color=INK)


def plain_log_ticks(axis: Axis) -> None:
    """Ticks at 1, 2, 5 of every decade, as plain numbers."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def line_of(style: LineStyle, x: ArrayLike = (), y: ArrayLike = (), **settings: Any) -> Line2D:
    """A line with markers, for a panel or a legend."""
    look: dict[str, Any] = {
        "color": style.color, "linewidth": 1.5, "marker": style.marker, "markersize": 4.8,
        "markerfacecolor": "white" if style.hollow else style.color, "markeredgecolor": style.color,
        "markeredgewidth": 1.1 if style.hollow else 0.0,
    }  # fmt: skip
    return Line2D(np.asarray(x), np.asarray(y), **(look | settings))


def add_line(axes: Axes, style: LineStyle, x: ArrayLike, y: ArrayLike, **settings: Any) -> None:
    """Draw a line with markers; both axes grow to show it."""
    axes.add_line(line_of(style, x, y, **settings))
    axes.autoscale_view()


T = TypeVar("T")


def drawer(figure_of: Callable[[T], Figure]) -> Callable[[T, Path], None]:
    """A function that draws a figure to a file: PNG, PDF or SVG by suffix, written whole or not at all."""

    def draw(source: T, path: Path) -> None:
        with checked_draft(path, PICTURE_SUFFIXES) as draft:
            save_figure(figure_of(source), draft)

    draw.__doc__ = figure_of.__doc__
    return draw


@contextmanager
def checked_draft(path: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """A draft that becomes `path` when the block ends well; an unknown suffix is refused before any work is done."""
    if path.suffix.lower() not in suffixes:
        kind = f"the suffix {path.suffix!r}" if path.suffix else "no suffix"
        raise InputError(f"cannot draw {path}: {kind} names no known format; use {', '.join(suffixes)}")
    with whole_file(path) as draft:
        yield draft


def save_figure(figure: Figure, draft: Path) -> None:
    """Write PNG, PDF or SVG by suffix, without the time of writing: equal pictures are equal files (PNG, PDF)."""
    undated = {".png": {"Software": None}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
    figure.savefig(draft, format=draft.suffix.lower()[1:], dpi=figure.dpi, metadata=undated[draft.suffix.lower()])


PICTURE_SUFFIXES = (".png", ".pdf", ".svg")
