"""`phygail benchmark`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from phygail.cli.options import Count, EngineName, Names, Plugins, Policy, Switch, command_line, make_engine
from phygail.config import require_extra


@dataclass(frozen=True)
class Benchmark:
    """Fly methods on the frozen cases and score them: success, time over bound, contacts, meters, bytes.

    159 cases that never change: swarms of 20 to 500 UAVs, strikes, single failures, other radios, odd shapes. Run the
    same command again to resume.

    For example:
      phygail benchmark --methods sidr,mine --plugin mine.py --out out/benchmark
      phygail benchmark --methods mine --plugin mine.py --quick --out out/quick
    """

    methods: Names
    """Names separated by commas, or all."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")]
    """Folder for score.md, rows.csv, run.json and figures."""
    quick: Switch = False
    """Only small cases, of at most 50 UAVs: a look, not a score to report."""
    workers: Count = 2
    """Processes; rows do not depend on it."""
    engine: EngineName = "local"
    """Processes on this machine, or Ray: the cluster at RAY_ADDRESS, of which every CPU is used."""
    policy: Policy = None
    """Policy for the methods that fly one."""
    plugin: Plugins = ()
    """Python file that registers further methods."""
    timeout: Annotated[float | None, tyro.conf.arg(metavar="S", help_behavior_hint="")] = None
    """Wall time per episode in seconds; a longer one ends as a failure flagged timeout."""

    def run(self) -> int:
        """Fly, score, print the board."""
        require_extra("benchmarks", "report", "polars")
        from phygail.benchmark import board, load_cases, score_cells
        from phygail.cli.options import episodes_bar, note, stdout
        from phygail.experiments.rows import read_rows
        from phygail.experiments.runner import compare
        from phygail.files import write_text
        from phygail.render.tables import TextTable

        with episodes_bar() as progress:
            compare(
                load_cases(quick=self.quick), self.methods, self.out, workers=self.workers, timeout=self.timeout,
                policy=self.policy, plugins=self.plugin, progress=progress,
                command=command_line(), engine=make_engine(self.engine, self.workers),
            )  # fmt: skip
        rows = read_rows(self.out / "rows.csv")
        write_text(self.out / "score.md", f"# Score\n\n{board(rows, quick=self.quick)}")
        header, lines = score_cells(rows)
        plain = [[line[0].strip("`"), *line[1:]] for line in lines]
        stdout().print(TextTable("Benchmark, best first", header, plain))
        note(f"score in {self.out / 'score.md'}, {len(rows):,} rows in {self.out / 'rows.csv'}")
        return 1 if any(row["flag"].startswith("error:") for row in rows) else 0
