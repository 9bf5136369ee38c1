"""The record of a run: a line per epoch on disk, progress on the terminal, and curves."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from phygail.config import InputError
from phygail.files import make_folder, read_text, whole_file, write_text
from phygail.render.style import BOLD, LineStyle, add_line, label_axes, panel_grid, save_figure

LOG = "log.jsonl"
RECENT = 50  # entries that a log remembers
Entry = dict[str, Any]  # of one epoch: "epoch", groups of numbers, rates

CURVES = "curves.png"
PANEL_IN = (3.2, 2.1)
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


class Stopwatch:
    """Wall time per stage of an epoch."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Time a block."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[stage] = self._seconds.get(stage, 0.0) + time.perf_counter() - begun

    def lap(self) -> dict[str, float]:
        """Seconds per stage since the last lap."""
        seconds, self._seconds = self._seconds, {}
        return seconds


def speed_report(seconds: dict[str, float], world_steps: int, decisions: int) -> Entry:
    """Seconds and share of every stage, world steps flown per second, and decisions learned from per second."""
    total = sum(seconds.values())
    learning = sum(seconds.get(stage, 0.0) for stage in ("discriminator", "rewards", "ppo"))
    return {
        "seconds": {stage: round(value, 3) for stage, value in seconds.items()},
        "share": {stage: round(value / total, 3) for stage, value in seconds.items()},
        "rate": {
            "collected_world_steps_per_s": world_steps / max(seconds.get("collect", 0.0), 1e-9),
            "learned_world_steps_per_s": world_steps / max(learning, 1e-9),
            "learned_decisions_per_s": decisions / max(total, 1e-9),
        },
    }


class RunLog:
    """Appends to the log of a run folder; entries after `epoch` (written before a kill, then lost) are dropped.

    Every entry holds the CPU minutes of the run so far: of all its processes, from their start on (imports and
    compilation included), without the time that another log of the same process has counted before.
    """

    _counted_s: ClassVar[float] = 0.0  # CPU time of this process that closed logs hold

    def __init__(
        self, folder: Path, epoch: int, *, tensorboard: bool = True, show: Callable[[Entry], None] | None = None
    ) -> None:
        self._show = show
        self._path = make_folder(folder) / LOG
        entries = [entry for entry in read_log(folder) if entry["epoch"] <= epoch]
        write_text(self._path, "".join(json.dumps(entry) + "\n" for entry in entries))
        self.recent = entries[-RECENT:]  # the last entries, the newest last
        self._earlier = float(entries[-1].get("cpu_minutes") or 0.0) if entries else 0.0
        self._board: Any = None
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=epoch + 1)

    def write(self, entry: Entry) -> None:
        """One epoch."""
        entry["cpu_minutes"] = round(self._earlier + (time.process_time() - RunLog._counted_s) / 60.0, 4)
        self.recent = [*self.recent[1 - RECENT :], entry]
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(_finite(entry)) + "\n")
        if self._board is not None:
            for name, value in flat(entry):
                self._board.add_scalar(name, value, entry["epoch"])
        if self._show is not None:
            self._show(entry)

    def close(self) -> None:
        """Flush what TensorBoard still holds."""
        RunLog._counted_s = time.process_time()
        if self._board is not None:
            self._board.close()


def read_log(folder: Path) -> list[Entry]:
    """The entries of a run's log; a last line torn by a kill is left out, as is everything without a log."""
    path = folder / LOG
    entries = []
    for line in read_text(path).splitlines() if path.exists() else []:
        with contextlib.suppress(json.JSONDecodeError):
            entries.append(json.loads(line))
    return entries


def flat(entry: Entry, prefix: str = "") -> Iterator[tuple[str, float]]:
    """("group/name", number) of every finite number of an entry."""
    for name, value in entry.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}/")
        elif isinstance(value, int | float) and math.isfinite(value):
            yield f"{prefix}{name}", float(value)


def _finite(value: Any) -> Any:
    """The entry with null for NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def headline(entry: Entry) -> str:
    """One epoch in a line: exploring success, time over bound, the last validation, losses."""
    flown, ppo, judged = entry["flown"], entry["ppo"], entry.get("discriminator") or {}
    words = [f"{flown['episodes']:.0f} episodes", f"success {shown(flown['success'], 2)}"]
    words.append(f"over bound {shown(flown['over_bound'], 2)}")
    words += [f"value {shown(ppo['value'], 4)}", f"entropy {shown(ppo['entropy'], 2)}", f"kl {shown(ppo['kl'], 4)}"]
    if judged:
        words.append(f"D {shown(judged['d_expert'], 2)}/{shown(judged['d_policy'], 2)}")
    if "validation" in entry:
        score = entry["validation"]
        words.append(f"| held out: success {shown(score['success'], 3)}, over bound {shown(score['over_bound'], 3)}")
    if entry.get("diagnosis"):
        words.append(f"| {entry['diagnosis']}")
    return "  ".join(words)


def shown(value: float, decimals: int) -> str:
    """A number, a dash where there is none: no episode of the epoch may have ended, or none with success."""
    return f"{value:.{decimals}f}" if math.isfinite(value) else "-"


@contextlib.contextmanager
def live(
    first: int, last: int, tell: Callable[[Entry], str] = headline, word: str = "epoch"
) -> Iterator[Callable[[Entry], None]]:
    """A function to show every entry with: a bar with the time left on a terminal, else a line per epoch on stderr."""
    if not sys.stderr.isatty():
        yield lambda entry: print(f"{word} {entry['epoch']}/{last}  {tell(entry)}", file=sys.stderr, flush=True)
        return
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as Left
    from rich.text import Text

    bar = Progress(
        TextColumn(word), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"), Left()
    )  # fmt: skip
    task, newest = bar.add_task(word, total=last, completed=first), Text(f"first {word}")
    with Live(Group(bar, newest), console=Console(stderr=True), refresh_per_second=2) as screen:

        def show(entry: Entry) -> None:
            bar.update(task, completed=entry["epoch"])
            newest.plain = tell(entry)
            if "validation" in entry:
                screen.console.print(f"{word} {entry['epoch']}  {tell(entry)}", highlight=False)

        yield show


def draw_curves(folder: Path, panels: Sequence[Panel] = PANELS) -> Path:
    """Draw the log of a run folder to FOLDER/curves.png."""
    entries = read_log(folder)
    if not entries:
        raise InputError(f"{folder} holds no training log: name the folder of a run")
    path = folder / CURVES
    with whole_file(path) as draft:
        save_figure(curves_figure(entries, panels), draft)
    return path


def curves_figure(entries: Sequence[Entry], panels: Sequence[Panel] = PANELS) -> Figure:
    """The curves of a training, from the entries of its log."""
    figure, columns = panel_grid(len(panels) // 3, 3, PANEL_IN, {}, gap_in=(0.5, 0.75))
    grid = [axes for row in zip(*columns, strict=True) for axes in row]
    for axes, (title, limits, lines) in zip(grid, panels, strict=True):
        _draw_panel(axes, title, limits, lines, entries)
    return figure


def _draw_panel(
    axes: Axes, title: str, limits: tuple[float, float] | None, lines: Sequence[Line], entries: Sequence[Entry]
) -> None:
    for (label, where, marker), color in zip(lines, BOLD, strict=False):
        group, name = where.split("/")
        points = [(e["epoch"], e[group][name]) for e in entries if (e.get(group) or {}).get(name) is not None]
        if points:
            add_line(axes, LineStyle(color, marker), *zip(*points, strict=True), label=label, markersize=3)
    label_axes(axes, x="epoch", title=title)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if limits:
        axes.set_ylim(*limits)
    if len(lines) > 1 and axes.lines:
        axes.legend(fontsize=8, frameon=False)
