"""`phygail reproduce`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from phygail.cli.options import Count, EngineName, MaybeNumbers, Plugins, Switch, command_line, make_engine
from phygail.config import InputError, require_extra

if TYPE_CHECKING:
    from phygail.experiments.experiment import Experiment, Scale
    from phygail.experiments.runner import Flying, Progress
    from phygail.experiments.trained import Budget

ALL = "all"
MaybeCount = Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")]


@dataclass(frozen=True)
class Reproduce:
    """Run an experiment of the paper, or beyond it: flights, tables beside the paper's numbers, figures.

    Run it again to resume, or with more --cases, --uavs or --methods to add to what is there.

    For example:
      phygail reproduce --list
      phygail reproduce overall --cases 1 --uavs 20,50 --methods center-fly,sidr,reach --out out/overall
      phygail reproduce noise --workers 8
      phygail reproduce overall --seed 2 --out results/overall-seed-2
      phygail reproduce all --cases 1 --out out
    """

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME", help_behavior_hint="")] = ""
    """Of the experiment, or all."""
    list: Switch = False
    """Say which experiments there are."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder for rows, tables and figures, results/NAME unless given; for all the folder of their folders.

    optimality is made of the flights of overall, which stand in a folder of that name beside it. Flights that two
    experiments share are flown once if their folders stand side by side under their names.
    """
    cases: MaybeCount = None
    """Scenarios per setting, instead of the declared number; slow planners never fly more than declared."""
    uavs: MaybeNumbers = None
    """Some of the swarm sizes, e.g. 20,50."""
    damage: MaybeNumbers = None
    """Some of the damage ratios, e.g. 0.25,0.5."""
    failures: MaybeNumbers = None
    """Some of the numbers of failures, e.g. 1,2, where single UAVs fail."""
    methods: Annotated[str | None, tyro.conf.arg(metavar="NAMES", help_behavior_hint="")] = None
    """Some of the methods, or others, e.g. one of --plugin."""
    seed: Count = 0
    """Of the scenarios: another seed draws other cases of the same settings, into a folder of its own."""
    workers: Count = 2
    """Processes, for flights and for trainings side by side; results do not depend on it."""
    engine: EngineName = "local"
    """Processes on this machine, or Ray: the cluster at RAY_ADDRESS, of which every CPU is used."""
    plugin: Plugins = ()
    """Python file that registers further methods."""
    experts: Annotated[Path | None, tyro.conf.arg(metavar="FILE.h5", help_behavior_hint="")] = None
    """Expert database, for experiments that train policies: ablation, sensitivity, training, case-study."""
    profile: Literal["compact", "paper-network", "paper", "smoke"] = "compact"
    """Size of an epoch of training."""
    epochs: Count = 0
    """Of every training, instead of the profile's."""
    seeds: Count = 1
    """Trainings of every variant."""
    variants: Annotated[str | None, tyro.conf.arg(metavar="NAMES", help_behavior_hint="")] = None
    """Some of the variants to train."""
    set: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=VALUE")] = ()
    """A setting of every training; may be repeated."""
    runs: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder of the trainings, runs beside --out unless given; experiments share them."""
    training: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """A training that exists, for the experiments training and case-study, instead of one of their own."""
    timeout: Annotated[float | None, tyro.conf.arg(metavar="S", help_behavior_hint="")] = None
    """Wall time per episode in seconds; a longer one ends as a failure flagged timeout."""

    def run(self) -> int:
        """Reproduce one experiment or all of them."""
        from phygail.cli.options import note
        from phygail.experiments.catalog import EXPERIMENTS

        if self.list:
            self._show()
            return 0
        if not self.name:
            raise InputError("no experiment is named: give one of phygail reproduce --list, or all")
        require_extra("experiments", "report", "polars")
        names = EXPERIMENTS.names() if self.name == ALL else [self.name]
        for name in names:
            experiment = EXPERIMENTS.get(name)
            if self.name == ALL and (why := self._unfit(experiment)):
                note(f"{name} is left out: {why}")
                continue
            base = self.out or Path("results")
            out = base if self.out is not None and self.name != ALL else base / name
            self._one(experiment, out)
        return 0

    def _unfit(self, experiment: Experiment) -> str:
        """Why one of all experiments cannot run with these flags; empty if it can."""
        from phygail.experiments.experiment import scaled

        if experiment.variants and self.experts is None and self.training is None:
            return "it trains policies, give --experts FILE.h5"
        try:
            scaled(experiment, self._scale())
        except InputError as error:
            return str(error)
        return ""

    def _one(self, experiment: Experiment, out: Path) -> None:
        from phygail.cli.options import note
        from phygail.experiments.reproduce import REPORT, run_experiment, write_report

        run_experiment(experiment, out, self._scale(), self._flying(), self._budget())
        evidence = write_report(experiment, out)
        print((out / REPORT).read_text(encoding="utf-8"))
        rows = f"{evidence.rows.height:,} rows, " if evidence.rows.height else ""
        note(f"{experiment.name}: {rows}tables in {out / REPORT}")

    def _scale(self) -> Scale:
        from phygail.experiments.experiment import Scale
        from phygail.experiments.grid import parse_numbers, parse_whole

        return Scale(
            None if self.uavs is None else parse_whole(self.uavs, "--uavs"),
            None if self.damage is None else parse_numbers(self.damage, "--damage"),
            None if self.methods is None else tuple(name.strip() for name in self.methods.split(",")),
            self.cases,
            self.seed,
            None if self.failures is None else parse_whole(self.failures, "--failures"),
        )

    def _budget(self) -> Budget:
        from phygail.experiments.trained import Budget

        names = tuple(name.strip() for name in self.variants.split(",")) if self.variants else ()
        return Budget(self.experts, self.profile, self.epochs, self.seeds, self.set, self.runs, names, self.training)

    def _flying(self) -> Flying:
        from phygail.cli.options import episodes_bar, note
        from phygail.experiments.runner import Flying

        @contextlib.contextmanager
        def report(title: str) -> Iterator[Progress]:
            note(title)
            with episodes_bar() as progress:
                yield progress

        engine = partial(make_engine, self.engine)
        return Flying(self.workers, self.timeout, self.plugin, engine, report, command_line(), note)

    def _show(self) -> None:
        from phygail.cli.options import stdout
        from phygail.experiments.catalog import EXPERIMENTS
        from phygail.render.tables import TextTable

        rows = []
        for name in EXPERIMENTS:
            experiment = EXPERIMENTS.get(name)
            flights = f"{sum(map(len, experiment.legs)) * max(1, len(experiment.variants), experiment.checkpoints):,}"
            rows.append([name, f"as {experiment.flights_of}" if experiment.flights_of else flights, experiment.title])
        stdout().print(TextTable("Experiments", ("name", "episodes", "what"), rows, running=True))
