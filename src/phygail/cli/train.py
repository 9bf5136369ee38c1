"""`phygail train`, and what comes before and after it: `phygail experts` and `phygail export`."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from phygail.cli.options import Count, Numbers, Switch, command_line, require_one
from phygail.config import InputError, require_extra

if TYPE_CHECKING:
    from phygail.learning.run import Job
    from phygail.methods.phygail.train import Run

Database = Annotated[Path | None, tyro.conf.arg(metavar="FILE.h5", help_behavior_hint="")]
Folder = Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")]
MaybeCount = Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")]
Settings = Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=VALUE")]


@dataclass(frozen=True)
class Train:
    """Train the weights of a method: cr-mgc, demd, gdr-ts or cr-ma; phygail and reach-evolved have flags of their own.

    For example:
      phygail train reach-evolved --help
      phygail train phygail --help
      phygail train cr-mgc --out runs/cr-mgc.safetensors --set iterations=900
    """

    method: Annotated[str, tyro.conf.Positional]
    """Whose weights."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE.safetensors")] = None
    """Where the best weights go, config (.json) and log (.jsonl) beside them; runs/METHOD.safetensors if left out."""
    seed: int = 100_000
    """Of everything random; 0 to 1000 are reserved for reports."""
    profile: str | None = None
    """Of methods that have profiles (cr-mgc: fast, faithful)."""
    set: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=VALUE")] = ()
    """Another setting of the training; may be given several times."""

    def run(self) -> int:
        """Train and say how well the best weights do."""
        out = Path("runs") / f"{self.method}.safetensors" if self.out is None else self.out
        if out.suffix != ".safetensors":
            raise InputError(f"--out {out}: name a file that ends in .safetensors")
        made = self.make_job()
        from phygail.cli.options import stdout
        from phygail.learning.networks import one_thread
        from phygail.learning.run import run

        with one_thread():
            best = run(made, out, command_line())
        stdout().print(
            f"{out}: success {best.success:.2f}, {best.mean_steps:.1f} steps, "
            f"largest displacement {best.mean_largest_move_m:.1f} m on {len(made.scenarios)} validation scenarios"
        )
        return 0

    def make_job(self) -> Job:
        """The training with its settings, or a clear error."""
        from phygail.methods import METHODS

        place = METHODS.get(self.method).training
        if not place:
            trained = [name for name in METHODS if METHODS.get(name).training]
            raise InputError(f"the method {self.method!r} has no training: there are {', '.join(trained)}")
        require_extra("trainings", "learn", "torch")
        if self.seed < 0:
            raise InputError(f"--seed {self.seed}: choose 0 or more")
        module, _, name = place.partition(":")
        job = getattr(importlib.import_module(module), name)
        from phygail.learning.run import override

        config: Any = replace(inspect.signature(job).parameters["config"].default, seed=self.seed)
        if self.profile is not None:
            config = _with_profile(config, self.method, self.profile)
        return job(override(config, self.set))


def _with_profile(config: Any, method: str, profile: str) -> Any:
    if "profile" not in {field.name for field in fields(config)} or method != "cr-mgc":
        raise InputError(f"--profile {profile}: {method} has no profiles, leave it out")
    if profile not in ("fast", "faithful"):
        raise InputError(f"--profile {profile}: choose fast or faithful")
    return replace(config, profile=profile)


@dataclass(frozen=True)
class TrainPhygail:
    """Train the paper's policy: GAIL and MAPPO on the physics-gated graph network. Killed, it resumes bit for bit.

    For example:
      phygail train phygail --experts experts/paper.h5 --profile compact --out runs/compact
      phygail train phygail --resume runs/compact
      phygail train phygail --experts experts/paper.h5 --out runs/no-gail --set w_il=0 --set epochs=200
      phygail train phygail --experts experts/paper.h5 --start-from runs/compact --out runs/wide --set map_scale=5
      phygail train phygail --curves runs/compact
    """

    experts: Database = None
    """Expert database of `phygail experts`; with --resume only if it has moved."""
    out: Folder = None
    """Folder of a new run."""
    resume: Folder = None
    """Folder of a run to continue, with the settings it began with."""
    curves: Folder = None
    """Folder of a run whose training curves to draw (curves.png); nothing is trained."""
    profile: Literal["compact", "plus", "paper-network", "paper", "smoke"] = "compact"
    """Minutes (compact; plus: phygail-plus, which needs no experts), hours, weeks (paper), or seconds for a test."""
    epochs: MaybeCount = None
    """Epochs, instead of the profile's."""
    seed: MaybeCount = None
    """Equal seeds give equal weights."""
    warm_start: Count = 0
    """Passes of behavior cloning over the expert frames before learning; recorded with the weights."""
    start_from: Folder = None
    """Folder of a run whose networks this one begins with; noise and optimizers are new; recorded with the weights."""
    set: Settings = ()
    """Any other setting, e.g. gamma=0.98, graph=no-center, layer=gat; may be repeated."""
    stop_after: MaybeCount = None
    """Stop after this epoch; --resume goes on."""
    tensorboard: Switch = True
    """Event files for TensorBoard are written unless this is given."""

    def run(self) -> int:
        """Train, resume or draw."""
        require_extra("trainings", "learn", "torch", "h5py")
        from phygail.cli.options import note
        from phygail.learning.log import draw_curves
        from phygail.methods.phygail.train import train

        what = require_one("of them", {"--out": self.out, "--resume": self.resume, "--curves": self.curves})
        if self.curves is not None:
            note(f"training curves in {draw_curves(self.curves)}")
            return 0
        if what is None:
            raise InputError("no folder for the run: give --out DIR for a new one or --resume DIR")
        run = self._open()
        best = train(run, until=self.stop_after, tensorboard=self.tensorboard)
        if best is not None:
            note(
                f"best policy (epoch {run.learner.best_epoch}): success {best.success:.3f}, time over bound "
                f"{best.over_bound:.3f} on {len(run.validation)} held-out scenarios; {run.folder / 'best.safetensors'}"
            )
        return 0

    def _open(self) -> Run:
        from phygail.learning.run import override
        from phygail.methods.phygail.config import PROFILES
        from phygail.methods.phygail.train import resume_run, start_run

        flags = {"epochs": self.epochs, "seed": self.seed, "clone_passes": self.warm_start or None}
        settings = [f"{name}={value}" for name, value in flags.items() if value is not None] + list(self.set)
        if self.resume is not None:
            given = settings or (["--start-from"] if self.start_from else [])
            if given:
                raise InputError(f"--resume keeps the settings of the run: leave {given[0]} out or start a new run")
            return resume_run(self.resume, self.experts)
        assert self.out is not None
        config = override(PROFILES.get(self.profile), settings)
        return start_run(
            self.out, self.experts, config, first=self.start_from, profile=self.profile, command=command_line()
        )


@dataclass(frozen=True)
class TrainPhygailPlus(TrainPhygail):
    """Train phygail-plus: MAPPO in worlds of at most 20 flying, from random weights. Killed, it resumes bit for bit.

    For example:
      phygail train phygail-plus --out runs/plus
      phygail train phygail-plus --resume runs/plus
      phygail train phygail-plus --out runs/soft --set graph=plus-no-damaged --seed 200002
      phygail export runs/plus/latest.safetensors --out plus.onnx
    """

    profile: Literal["plus"] = "plus"
    """It has one profile."""


@dataclass(frozen=True)
class TrainReachEvolved:
    """Train reach-evolved: clone reach, then evolve in worlds of at most 20 flying. Killed, it resumes bit for bit.

    For example:
      phygail train reach-evolved --out runs/reach-evolved --workers 2
      phygail train reach-evolved --resume runs/reach-evolved
      phygail train reach-evolved --out runs/other --seed 100001 --set generations=60
      phygail export runs/reach-evolved/best.safetensors --out policy.onnx
    """

    out: Folder = None
    """Folder of a new run."""
    resume: Folder = None
    """Folder of a run to continue, with the settings it began with."""
    seed: MaybeCount = None
    """Equal seeds give equal weights."""
    set: Settings = ()
    """Any other setting of methods.reach_evolved.train.EvolveConfig, e.g. generations=60; may be repeated."""
    stop_after: MaybeCount = None
    """Stop after this generation; --resume goes on."""
    workers: Count = 1
    """Threads; the weights do not depend on it."""
    tensorboard: Switch = True
    """Event files for TensorBoard are written unless this is given."""

    def run(self) -> int:
        """Train or resume."""
        require_extra("trainings", "learn", "torch", "numba")
        from phygail.cli.options import note
        from phygail.learning.run import BEST, override
        from phygail.methods.reach_evolved.train import EvolveConfig, evolve, resume_evolution, start_evolution

        if require_one("of them", {"--out": self.out, "--resume": self.resume}) is None:
            raise InputError("no folder for the run: give --out DIR for a new one or --resume DIR")
        settings = ([f"seed={self.seed}"] if self.seed is not None else []) + list(self.set)
        if self.resume is not None:
            if settings:
                raise InputError(f"--resume keeps the settings of the run: leave {settings[0]} out or start a new run")
            run = resume_evolution(self.resume)
        else:
            assert self.out is not None
            run = start_evolution(self.out, override(EvolveConfig(), settings), command_line())
        best = evolve(run, until=self.stop_after, workers=max(1, self.workers), tensorboard=self.tensorboard)
        if best is not None:
            note(f"best policy: {best.over_clone:.3f} of its clone's steps, zero-shot; {run.folder / BEST}")
        else:
            note(f"no policy was validated yet; go on with --resume {run.folder}")
        return 0


# --- experts ---------------------------------------------------------------------------------------------------------


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
        from phygail.methods.phygail.experts.dataset import draw_expert_steps, expert_markdown, expert_tables, facts
        from phygail.methods.phygail.experts.recipe import Recipe, choose_pool

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


# --- export ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Export:
    """Turn trained weights into one ONNX file that flies without torch.

    For example:
      phygail export runs/paper/best.safetensors --out policy.onnx
      phygail export runs/reach-evolved/best.safetensors --out policy.onnx
    """

    weights: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE.safetensors")]
    """Weights of phygail, phygail-plus or reach-evolved, with their JSON beside them."""
    out: Annotated[Path, tyro.conf.arg(metavar="FILE.onnx")] = Path("policy.onnx")
    """Where the policy goes; `--policy` of the other commands flies it."""

    half: Switch = False
    """Round the weights of a graph policy to half precision first; they are written beside the policy."""

    def run(self) -> int:
        """Export, check against torch, and say what was written."""
        require_extra("exports", "learn", "torch", "onnxscript")
        from phygail.cli.options import stdout
        from phygail.methods.phygail import PLUS_KIND, load_plus, load_policy
        from phygail.methods.phygail.export import export_weights, round_weights
        from phygail.methods.reach_evolved import KIND, load_gates
        from phygail.methods.reach_evolved.export import export_gates
        from phygail.weights import weights_kind

        kind = weights_kind(self.weights)
        gates = kind == KIND
        if self.half and gates:
            raise InputError("--half rounds graph policies: leave it out for gates")
        weights = round_weights(self.weights, self.out.with_suffix(".safetensors")) if self.half else self.weights
        path = export_gates(weights, self.out) if gates else export_weights(weights, self.out)
        load = load_gates if gates else load_plus if kind == PLUS_KIND else load_policy
        parameters = int(load(path.resolve()).card["parameters"])
        stdout().print(f"{path}: {parameters:,} parameters, {path.stat().st_size:,} bytes", highlight=False)
        return 0
