"""`phygail train phygail-paper`."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from phygail.cli.options import Count, Switch, require_one
from phygail.config import InputError

if TYPE_CHECKING:
    from phygail.training.run import Run

Database = Annotated[Path | None, tyro.conf.arg(metavar="FILE.h5", help_behavior_hint="")]
Folder = Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")]
MaybeCount = Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")]
Settings = Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=VALUE")]


@dataclass(frozen=True)
class TrainPhygail:
    """Train the paper's policy: GAIL and MAPPO on the physics-gated graph network. Killed, it resumes bit for bit.

    For example:
      phygail train phygail-paper --experts experts/paper.h5 --profile cpu --out runs/paper
      phygail train phygail-paper --resume runs/paper
      phygail train phygail-paper --experts experts/paper.h5 --out runs/no-gail --set w_il=0 --set epochs=200
      phygail train phygail-paper --experts experts/paper.h5 --start-from runs/paper --out runs/wide --set map_scale=5
      phygail train phygail-paper --curves runs/paper
    """

    experts: Database = None
    """Expert database of `phygail experts`; with --resume only if it has moved."""
    out: Folder = None
    """Folder of a new run."""
    resume: Folder = None
    """Folder of a run to continue, with the settings it began with."""
    curves: Folder = None
    """Folder of a run whose training curves to draw (curves.png); nothing is trained."""
    profile: Literal["paper", "cpu", "smoke"] = "cpu"
    """Size of the run: the paper's (weeks on two cores), hours on two cores, or seconds for a test."""
    epochs: MaybeCount = None
    """Epochs, instead of the profile's."""
    seed: MaybeCount = None
    """Equal seeds give equal weights."""
    warm_start: Count = 0
    """Passes of behavior cloning over the expert frames before learning; told beside the weights."""
    start_from: Folder = None
    """Folder of a run whose networks this one begins with; noise and optimizers are new; told beside the weights."""
    set: Settings = ()
    """Any other setting, e.g. gamma=0.98, graph=no-center, layer=gat; may be repeated."""
    stop_after: MaybeCount = None
    """Stop after this epoch; --resume goes on."""
    tensorboard: Switch = True
    """Event files for TensorBoard are written unless this is given."""

    def run(self) -> int:
        """Train, resume or draw."""
        if importlib.util.find_spec("torch") is None or importlib.util.find_spec("h5py") is None:
            raise InputError("training needs torch and h5py: pip install 'phygail[learn]'")
        from phygail.cli.console import complain
        from phygail.training.curves import draw_curves
        from phygail.training.trainer import train

        what = require_one("of them", {"--out": self.out, "--resume": self.resume, "--curves": self.curves})
        if self.curves is not None:
            complain(f"training curves in {draw_curves(self.curves)}")
            return 0
        if what is None:
            raise InputError("no folder for the run: give --out DIR for a new one or --resume DIR")
        run = self._open()
        best = train(run, until=self.stop_after, tensorboard=self.tensorboard)
        if best is not None:
            complain(
                f"best policy (epoch {run.learner.best_epoch}): success {best.success:.3f}, time over bound "
                f"{best.over_bound:.3f} on {len(run.validation)} held-out scenarios; {run.folder / 'best.safetensors'}"
            )
        return 0

    def _open(self) -> Run:
        from phygail.training.profiles import PROFILES, override
        from phygail.training.run import resume_run, start_run

        flags = {"epochs": self.epochs, "seed": self.seed, "clone_passes": self.warm_start or None}
        settings = [f"{name}={value}" for name, value in flags.items() if value is not None] + list(self.set)
        if self.resume is not None:
            given = settings or (["--start-from"] if self.start_from else [])
            if given:
                raise InputError(f"--resume keeps the settings of the run: leave {given[0]} out or start a new run")
            return resume_run(self.resume, self.experts)
        assert self.out is not None
        if self.experts is None:
            raise InputError("no expert database: give --experts FILE.h5; phygail experts --out FILE.h5 builds one")
        config = override(PROFILES.get(self.profile), settings)
        command = shlex.join(["phygail", *sys.argv[1:]])
        return start_run(
            self.out, self.experts, config, first=self.start_from, profile=self.profile, command=command
        )  # fmt: skip
