"""`phygail experts`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from phygail.cli.options import Count, Numbers, command_line


@dataclass(frozen=True)
class Experts:
    """Build the expert database: the fastest of several methods on each scenario. Run it again to resume.

    For example:
      phygail experts --out experts/paper.h5
      phygail experts --out experts/quick.h5 --without cr-mgc,demd,gdr-ts --cases 10
      phygail experts --out experts/all.h5 --pool all --workers 8
    """

    out: Annotated[Path, tyro.conf.arg(metavar="FILE.h5")]
    """The database; its summary (.md) and a histogram (.png) are written beside it."""
    pool: Literal["paper", "decentralized", "all"] = "paper"
    """Methods that may become the expert: the paper's baselines, those without global information, or all."""
    without: Annotated[str | None, tyro.conf.arg(metavar="NAMES", help_behavior_hint="")] = None
    """Members of the pool to leave out, e.g. slow planners: cr-mgc,demd,gdr-ts."""
    uavs: Count = 20
    """Swarm size."""
    damage: Numbers = "0.05:0.9:0.05"
    """Damage ratios (the last of a range included)."""
    cases: Count = 110
    """Scenarios per damage ratio; every tenth is held out for validation."""
    seed: Count = 400_000
    """Equal seeds give equal scenarios."""
    range_scale: float = 1.0
    """Radio ranges shorter by a log-uniform factor from 1 to this: 20 UAVs spread like survivors of a large swarm."""
    workers: Count = 2
    """Processes; the database does not depend on it."""

    def run(self) -> int:
        """Build and summarize."""
        from phygail.cli.options import episodes_bar, note, stdout
        from phygail.experiments.grid import parse_numbers
        from phygail.files import write_text
        from phygail.methods.phygail.experts.build import build_experts, check_output
        from phygail.methods.phygail.experts.recipe import Recipe, choose_pool
        from phygail.methods.phygail.experts.report import draw_expert_steps, expert_markdown, expert_tables, facts

        check_output(self.out, self.workers)  # choosing the pool may take seconds
        unwanted = [name.strip() for name in self.without.split(",")] if self.without else []
        damage = parse_numbers(self.damage, "--damage")
        recipe = Recipe(
            self.pool, *choose_pool(self.pool, unwanted), self.uavs, damage, self.cases, self.seed, self.range_scale
        )
        with episodes_bar() as progress:
            experts = build_experts(
                recipe, self.out, workers=self.workers, progress=progress,
                command=command_line(),
            )  # fmt: skip
        summary, picture = self.out.with_suffix(".md"), self.out.with_suffix(".png")
        write_text(summary, expert_markdown(experts))
        draw_expert_steps(experts, picture)
        for table in expert_tables(experts):
            stdout().print(table)
        stdout().print(facts(experts), highlight=False)
        note(f"{len(experts):,} demonstrations in {self.out}, summary in {summary}, histogram in {picture}")
        return 0
