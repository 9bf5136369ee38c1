"""The training curves of a run as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from phygail.config import InputError
from phygail.files import whole_file
from phygail.training.log import Entry, read_log

CURVES = "curves.png"
Line = tuple[str, str, str]  # label, path in a log entry, marker (for sparse points)
Panel = tuple[str, tuple[float, float] | None, tuple[Line, ...]]  # title, y range (None: as the data), lines
# Three in a row.
PANELS: tuple[Panel, ...] = (
    ("success", (0, 1.02), (("exploring", "flown/success", ""), ("held out", "validation/success", "o"))),
    ("time over bound", None, (("exploring", "flown/over_bound", ""), ("held out", "validation/over_bound", "o"))),
    ("reward per step", None, (("total, scaled", "reward/total", ""), ("r_GAIL", "reward/imitation", ""))),
    ("D of ...", (0, 1), (("experts", "discriminator/d_expert", ""), ("policy", "discriminator/d_policy", ""))),
    ("losses", None, (("critic", "ppo/value", ""), ("discriminator", "discriminator/loss", ""))),
    ("entropy of u, nats", None, (("entropy", "ppo/entropy", ""),)),
)  # fmt: skip


def draw_curves(folder: Path, panels: Sequence[Panel] = PANELS) -> Path:
    """Draw the log of a run folder to FOLDER/curves.png."""
    entries = read_log(folder)
    if not entries:
        raise InputError(f"{folder} holds no training log: name the folder of a run")
    figure = Figure(figsize=(12, 3.25 * (len(panels) // 3)), layout="constrained")
    for axes, (title, limits, lines) in zip(figure.subplots(len(panels) // 3, 3).flat, panels, strict=True):
        _draw_panel(axes, title, limits, lines, entries)
    path = folder / CURVES
    with whole_file(path) as draft:
        figure.savefig(draft, dpi=120)
    return path


def _draw_panel(
    axes: Axes, title: str, limits: tuple[float, float] | None, lines: Sequence[Line], entries: Sequence[Entry]
) -> None:
    for label, where, marker in lines:
        group, name = where.split("/")
        points = [(e["epoch"], e[group][name]) for e in entries if (e.get(group) or {}).get(name) is not None]
        if points:
            axes.plot(*zip(*points, strict=True), label=label, marker=marker, markersize=3, linewidth=1.2)
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel("epoch", fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    if limits:
        axes.set_ylim(*limits)
    if len(lines) > 1 and axes.lines:
        axes.legend(fontsize=8, frameon=False)
