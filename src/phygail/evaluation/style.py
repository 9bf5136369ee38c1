"""The look of all pictures: colors, markers, panels, and files that are written whole.

Figures are built from `Figure` objects on the Agg canvas, never through pyplot: no display, no global state, safe in
threads. Colors are those of Okabe and Ito and of Tol, which stay apart under the common color deficiencies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from phygail.config import InputError
from phygail.files import whole_file

INK = "#1F2933"  # text
SOFT = "#66717D"  # second-rank text
FAINT = "#DDE2E7"  # grids and map frames
LOST = "#A9B1BA"  # the damaged
MAP = "#FBFCFD"  # ground of a map
STAR = "#FFD23F"  # the center
SUCCESS = "#00875A"
FAILURE = "#B3261E"

POINTS_PER_INCH = 72.0
PICTURE_DPI = 200

# Large subnets get these, most distinct first ...
_BOLD = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#8E4FA8", "#56B4E9", "#CC79A7", "#8A7A00")
# ... and all further ones share these.
_MUTED = ("#5B8DB8", "#C08A5A", "#6FA58A", "#B56A6A", "#8C86B8", "#A39A52", "#B987A8", "#5FA3A8", "#8A8F98", "#9C7B5E")


@dataclass(frozen=True)
class LineStyle:
    """How one method looks in every chart."""

    color: str
    marker: str
    hollow: bool = False


METHOD_STYLES: dict[str, LineStyle] = {
    "phygail": LineStyle("#D55E00", "o"),
    "phygail-paper": LineStyle("#E69F00", "o", hollow=True),
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
        name = _BOLD[rank] if rank < len(_BOLD) else _MUTED[(rank - len(_BOLD)) % len(_MUTED)]
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


def dress_axes(axes: Axes) -> None:
    """A faint grid, no frame above and to the right, small soft numbers."""
    axes.grid(visible=True, color=FAINT, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=SOFT, labelsize=8)


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
