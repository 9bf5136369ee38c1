"""Layouts by name or file: the six that the paper's authors published, and the user's own."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from phygail.config import InputError
from phygail.swarm.formation import width_for
from phygail.swarm.scenario import load_layout

PAPER_SIZES = (20, 50, 100, 200, 500, 1000)
PAPER_LAYOUTS = tuple(f"paper-{n}" for n in PAPER_SIZES)  # one fixed layout per N; some hold pairs closer than 10 m


@dataclass(frozen=True, eq=False)
class NamedLayout:
    """A layout and the map it belongs to.

    Attributes:
        name: For scenario ids.
        positions: (N, 2) m.
        width_m: Side of the map; None where the layout is all there is.
    """

    name: str
    positions: np.ndarray
    width_m: float | None


def find_layout(source: str | Path) -> NamedLayout:
    """The layout in a CSV file, or one of the paper's by its name (paper-20 ... paper-1000)."""
    text = str(source)
    if text in PAPER_LAYOUTS:
        uavs = int(text.removeprefix("paper-"))
        with as_file(files("phygail") / "layouts" / f"paper_{uavs}.csv") as path:
            return NamedLayout(text, load_layout(path), width_for(uavs))
    path = Path(source)
    if not path.suffix and not path.is_file():
        raise InputError(f"no layout {text!r}: name a CSV file or one of {', '.join(PAPER_LAYOUTS)}")
    return NamedLayout(path.stem, load_layout(path), None)
