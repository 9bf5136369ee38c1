"""`phygail train phygail`."""

from __future__ import annotations

import importlib.util
import math
import shlex
import sys
from dataclasses import dataclass

from phygail.cli.options import Count, Switch, require_one
from phygail.cli.train_phygail import Folder, MaybeCount, Settings
from phygail.config import InputError


@dataclass(frozen=True)
class TrainEvolve:
    """Train our policy: clone reach, then evolve in worlds with at most 20 UAVs flying. Killed, it resumes bit for bit.

    For example:
      phygail train phygail --out runs/phygail --workers 2
      phygail train phygail --resume runs/phygail
      phygail train phygail --out runs/other --seed 100001 --set generations=60
      phygail export runs/phygail/best.safetensors --out policy.onnx
    """

    out: Folder = None
    """Folder of a new run."""
    resume: Folder = None
    """Folder of a run to continue, with the settings it began with."""
    seed: MaybeCount = None
    """Equal seeds give equal weights."""
    set: Settings = ()
    """Any other setting of training.evolve_run.EvolveConfig, e.g. generations=60; may be repeated."""
    stop_after: MaybeCount = None
    """Stop after this generation; --resume goes on."""
    workers: Count = 1
    """Threads; the weights do not depend on it."""
    tensorboard: Switch = True
    """Event files for TensorBoard are written unless this is given."""

    def run(self) -> int:
        """Train or resume."""
        if any(importlib.util.find_spec(name) is None for name in ("torch", "numba")):
            raise InputError("training needs torch and numba: pip install 'phygail[learn]'")
        from phygail.cli.console import complain
        from phygail.training.evolve_run import BEST, EvolveConfig, evolve, resume_evolution, start_evolution
        from phygail.training.profiles import override

        if require_one("of them", {"--out": self.out, "--resume": self.resume}) is None:
            raise InputError("no folder for the run: give --out DIR for a new one or --resume DIR")
        settings = ([f"seed={self.seed}"] if self.seed is not None else []) + list(self.set)
        if self.resume is not None:
            if settings:
                raise InputError(f"--resume keeps the settings of the run: leave {settings[0]} out or start a new run")
            run = resume_evolution(self.resume)
        else:
            assert self.out is not None
            command = shlex.join(["phygail", *sys.argv[1:]])
            run = start_evolution(self.out, override(EvolveConfig(), settings), command)
        best = evolve(run, until=self.stop_after, workers=max(1, self.workers), tensorboard=self.tensorboard)
        if math.isfinite(best):
            complain(f"best policy: {best:.3f} of its clone's steps, zero-shot; {run.folder / BEST}")
        else:
            complain(f"no policy was validated yet; go on with --resume {run.folder}")
        return 0
