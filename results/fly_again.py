"""Do the rows under results/ still hold? Fly a share of them again: `make fly-again` or

    python results/fly_again.py [--share 0.05] [--only FOLDER] [--methods a,b] [--workers 2] [--most-s 1]

Tells every row that differs when it is flown, then old against new steps per folder. Exit code 1 if any column but the
timings differs anywhere, 2 if nothing can be flown, 130 if it was interrupted before anything differed. Which rows are
flown depends on the rows and the options only. Run it after every change of a rule: each difference is explained in
CHANGELOG.md, or the folder is flown again in the same commit.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

from phygail.config import InputError
from phygail.experiments.again import HEADER, Old, Pair, Plan, fly_again, folder_cells, plan_again
from phygail.experiments.engine import LocalEngine
from phygail.render.tables import markdown_table

RESULTS = Path(__file__).parent
SHARE = 0.05
MOST_S = 1.0  # one row in seven is slower; flying those would take seven times as long as all others
TOLD_S = 20.0  # between two lines of progress


class Progress:
    """A line on stderr now and then: what is done, and how long the rest will take at the pace so far."""

    def __init__(self) -> None:
        self._start = self._last = time.monotonic()

    def __call__(self, done: float, total: float) -> None:
        now = time.monotonic()
        if now - self._last >= TOLD_S:
            self._last = now
            left = (now - self._start) * (total - done) / max(done, 1e-9)
            print(f"{done / total:.0%} flown, {left / 60:.1f} min left", file=sys.stderr, flush=True)


def tell_plan(plan: Plan) -> None:
    """What is flown, what is not and why."""
    cost = sum(old.cost_s for old in plan.chosen) / 60
    print(f"{len(plan.chosen):,} rows to fly, by their timings {cost:.1f} core-minutes.")
    if plan.slow_s:
        print(f"The slow ones that are left out would take {plan.slow_s / 60:.1f} core-minutes more (--most-s).")
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for (folder, reason), count in plan.left_out.items():
        reasons[reason][folder.split("/")[0]] += count
    for reason, folders in sorted(reasons.items()):
        named = ", ".join(f"{folder} {count:,}" for folder, count in sorted(folders.items()))
        print(f"Left out, {reason}: {folders.total():,} rows ({named}).")
    for note in plan.notes:
        print(f"Note: {note}.")
    print(flush=True)


def tell_pairs(pairs: list[Pair]) -> None:
    """The table per folder; where anything differs, per method too."""
    print(markdown_table(HEADER, folder_cells(pairs, lambda pair: pair.old.folder)))
    folders = {pair.old.folder for pair in pairs if pair.differing}
    if folders:
        changed = [pair for pair in pairs if pair.old.folder in folders]
        print(markdown_table(HEADER, folder_cells(changed, lambda pair: f"{pair.old.folder} {pair.new['method']}")))


def fly(chosen: list[Old], workers: int) -> tuple[list[Pair], bool]:
    """(pairs, whether all were flown); a row that differs is told at once, and an interruption loses nothing."""
    pairs: list[Pair] = []
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for pair in fly_again(chosen, LocalEngine(workers), Progress()):
            pairs.append(pair)
            if pair.differing:
                changes = ", ".join(f"{name} {pair.old.row[name]} -> {pair.new[name]}" for name in pair.differing)
                print(f"{pair.old.folder}: {pair.new['method']} on {pair.new['scenario']}: {changes}", flush=True)
    except KeyboardInterrupt:
        return pairs, False
    return pairs, True


def main() -> int:
    """Plan, fly, tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=SHARE, help="of the rows of each method and folder")
    parser.add_argument("--only", default="", help="folder below results/, e.g. overall or overall/fast")
    parser.add_argument("--methods", default="", help="names separated by commas; all unless given")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--most-s", type=float, default=MOST_S, help="leave out rows that took longer, in seconds")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the folders")
    options = parser.parse_args()
    methods = [name.strip() for name in options.methods.split(",") if name.strip()]
    try:
        plan = plan_again(
            options.results, share=options.share, most_s=options.most_s, only=options.only, methods=methods
        )
        tell_plan(plan)
        if not plan.chosen:
            raise InputError("no row can be flown: see above, or choose other options")
        pairs, whole = fly(plan.chosen, options.workers)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    tell_pairs(pairs)
    differ = sum(bool(pair.differing) for pair in pairs)
    short = "" if whole else f" of {len(plan.chosen):,} before the interruption"
    print(f"{len(pairs):,} rows flown again{short}, {differ:,} differ.")
    return 1 if differ else 0 if whole else 130


if __name__ == "__main__":
    sys.exit(main())
