"""Output: results on stdout, everything else on stderr."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH = 100_000  # of what goes into a file or a pipe: nothing is cut there; tables look after themselves
QUIET_S = 30.0  # between two lines of progress that nobody watches


def stdout() -> Console:
    """For results; plain text without a limit where there is no terminal to fit."""
    from rich.console import Console

    # Names come from users: [brackets] and :colons: in them are no markup.
    if sys.stdout.isatty():
        return Console(markup=False, emoji=False, highlight=False)
    return Console(
        width=PLAIN_WIDTH, force_terminal=False, color_system=None, markup=False, emoji=False, highlight=False
    )


def complain(message: str) -> None:
    """One line on stderr."""
    print(f"phygail: {' '.join(message.split())}", file=sys.stderr, flush=True)


def log_to_stderr(*, details: bool = False) -> None:
    """Warnings of the library as lines on stderr; with details, what lies behind them too."""
    level = logging.DEBUG if details else logging.WARNING
    logger = logging.getLogger("phygail")
    logger.handlers = [_LineHandler(level)]
    logger.setLevel(level)
    logger.propagate = False


class _LineHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.INFO:  # tracebacks keep their lines
            print(record.getMessage(), file=sys.stderr, flush=True)
        elif record.levelno >= logging.WARNING:
            complain(record.getMessage())


@contextlib.contextmanager
def episodes_bar() -> Iterator[Callable[[int, int], None]]:
    """A function to report (finished, all) to: a bar with the time left on a terminal, else a line now and then."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("episodes"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("episodes", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class _Lines:
    """Progress as a line every QUIET_S seconds."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() - self._last > QUIET_S:
            self._last = time.monotonic()
            complain(f"{done:,} of {total:,} episodes")
