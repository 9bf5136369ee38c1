"""`phygail train`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from phygail.config import InputError
from phygail.registry import Registry

if TYPE_CHECKING:
    from phygail.training.loop import Job


@dataclass(frozen=True)
class Trainable:
    """Where a training lives: imported when asked for, because it needs torch."""

    module: str
    config: str  # class of its settings; `module.job` takes an instance


TRAINABLES: Registry[Trainable] = Registry("training")
TRAINABLES.add("cr-mgc", Trainable("phygail.training.cr_mgc", "MetaConfig"))
TRAINABLES.add("demd", Trainable("phygail.training.demd", "MetaConfig"))
TRAINABLES.add("gdr-ts", Trainable("phygail.training.gdr_ts", "GdrTsConfig"))
TRAINABLES.add("cr-ma", Trainable("phygail.training.cr_ma", "CrMaConfig"))


@dataclass(frozen=True)
class Train:
    """Train the weights of a method: cr-mgc, demd, gdr-ts or cr-ma; phygail and phygail-paper have their own.

    For example:
      phygail train phygail --help
      phygail train phygail-paper --help
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
        from phygail.cli.console import stdout
        from phygail.models.plan_search import one_thread
        from phygail.training.loop import run

        with one_thread():
            best = run(made, out, " ".join(["phygail", *sys.argv[1:]]))
        stdout().print(
            f"{out}: success {best.success:.2f}, {best.mean_steps:.1f} steps, "
            f"largest displacement {best.mean_largest_move_m:.1f} m on {len(made.scenarios)} validation scenarios"
        )
        return 0

    def make_job(self) -> Job:
        """The training with its settings, or a clear error."""
        entry = TRAINABLES.get(self.method)
        if importlib.util.find_spec("torch") is None:
            raise InputError("training needs torch: pip install 'phygail[learn]'")
        if self.seed < 0:
            raise InputError(f"--seed {self.seed}: choose 0 or more")
        module = importlib.import_module(entry.module)
        from phygail.training.profiles import override

        config: Any = replace(getattr(module, entry.config)(), seed=self.seed)
        if self.profile is not None:
            config = _with_profile(config, self.method, self.profile)
        return module.job(override(config, self.set))


def _with_profile(config: Any, method: str, profile: str) -> Any:
    if "profile" not in {field.name for field in fields(config)} or method != "cr-mgc":
        raise InputError(f"--profile {profile}: {method} has no profiles, leave it out")
    if profile not in ("fast", "faithful"):
        raise InputError(f"--profile {profile}: choose fast or faithful")
    return replace(config, profile=profile)
