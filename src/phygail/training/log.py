"""What a run tells: a line per epoch on disk (JSONL, TensorBoard), and how it goes right now on the terminal."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from phygail.files import make_folder, read_text, write_text

LOG = "log.jsonl"
Entry = dict[str, Any]  # of one epoch: "epoch", groups of numbers, rates


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


def speed_report(seconds: dict[str, float], world_steps: int) -> Entry:
    """Seconds and share of every stage, and world steps per second: flown while collecting, learned from."""
    total = sum(seconds.values())
    learning = sum(seconds.get(stage, 0.0) for stage in ("discriminator", "rewards", "ppo"))
    return {
        "seconds": {stage: round(value, 3) for stage, value in seconds.items()},
        "share": {stage: round(value / total, 3) for stage, value in seconds.items()},
        "rate": {
            "collected_world_steps_per_s": world_steps / max(seconds.get("collect", 0.0), 1e-9),
            "learned_world_steps_per_s": world_steps / max(learning, 1e-9),
        },
    }


class RunLog:
    """Appends to the log of a run folder; entries after `epoch` (written before a kill, then lost) are dropped."""

    def __init__(self, folder: Path, epoch: int, *, tensorboard: bool = True) -> None:
        self._path = make_folder(folder) / LOG
        lines = [json.dumps(entry) for entry in read_log(folder) if entry["epoch"] <= epoch]
        write_text(self._path, "".join(line + "\n" for line in lines))
        self._board: Any = None
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=epoch + 1)

    def write(self, entry: Entry) -> None:
        """One epoch."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(_finite(entry)) + "\n")
        if self._board is not None:
            for name, value in flat(entry):
                self._board.add_scalar(name, value, entry["epoch"])

    def close(self) -> None:
        """Flush what TensorBoard still holds."""
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
    """JSON knows no NaN: null stands for it."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def headline(entry: Entry) -> str:
    """One epoch in a line: exploring success, time over bound, the last validation, losses."""
    flown, ppo, judged = entry["flown"], entry["ppo"], entry.get("discriminator") or {}
    words = [f"success {shown(flown['success'], 2)}", f"over bound {shown(flown['over_bound'], 2)}"]
    words += [f"value {shown(ppo['value'], 4)}", f"entropy {shown(ppo['entropy'], 2)}", f"kl {shown(ppo['kl'], 4)}"]
    if judged:
        words.append(f"D {shown(judged['d_expert'], 2)}/{shown(judged['d_policy'], 2)}")
    if "validation" in entry:
        score = entry["validation"]
        words.append(f"| held out: success {shown(score['success'], 3)}, over bound {shown(score['over_bound'], 3)}")
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
