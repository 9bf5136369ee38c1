"""A run folder: started once, resumed at will.

config.json         what the run is: settings, expert database, version, command
state.safetensors   where it stands
best.safetensors, latest.safetensors, policies/    actors (with JSON) for `phygail export`
log.jsonl, tensorboard/, curves.png                how it went
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from phygail import __version__
from phygail.config import InputError
from phygail.experts.dataset import ExpertSet
from phygail.files import make_folder, read_json, write_text
from phygail.models.plan_search import one_thread
from phygail.swarm.scenario import Scenario
from phygail.training.checkpoint import load_state, save_state
from phygail.training.clone import clone_experts
from phygail.training.holdout import spread
from phygail.training.learner import Learner, make_learner
from phygail.training.log import live
from phygail.training.profiles import TrainConfig, from_json
from phygail.training.teach import teach

CONFIG = "config.json"
KIND = "phygail-paper"

log = logging.getLogger("phygail")


@dataclass(frozen=True, eq=False)
class Run:
    """A run that is ready to train.

    Attributes:
        folder: Where it lives.
        config: Its settings.
        experts: The database, held-out scenarios included.
        validation: Held-out scenarios to validate on.
        learner: Networks and progress; changes while training.
        facts: Version, command, profile and database, for the JSON of every policy.
    """

    folder: Path
    config: TrainConfig
    experts: ExpertSet
    validation: tuple[Scenario, ...]
    learner: Learner
    facts: Mapping[str, Any]


def start_run(
    folder: Path,
    database: Path,
    config: TrainConfig,
    *,
    first: Path | None = None,
    profile: str = "",
    command: str = "",
) -> Run:
    """Begin a run in a folder that holds none.

    Args:
        folder: Where it will live.
        database: HDF5 file of `phygail experts`.
        config: Settings.
        first: Folder of a run whose networks this one begins with; noise and optimizers begin anew.
        profile: Name of the profile they come from. command: How a user repeats it.
    """
    if (folder / CONFIG).exists():
        raise InputError(f"{folder} holds a run already: continue it with --resume {folder} or choose another --out")
    experts = open_experts(database)
    about: dict[str, Any] = {
        "kind": KIND, "package": __version__, "profile": profile, "command": command,
        "experts": {"file": str(database), "content_sha256": str(experts.about["content_sha256"])},
        "config": asdict(config),
    }  # fmt: skip
    learner = make_learner(config)
    if first is not None:
        learner, about["first"] = _inherit(first, config)
    make_folder(folder)
    _warm_start(folder, learner, experts.training, config)
    save_state(folder, learner)
    write_text(folder / CONFIG, json.dumps(about, indent=1) + "\n")  # last: a folder with a config has a state
    return _run(folder, about, config, experts, learner)


def _inherit(folder: Path, config: TrainConfig) -> tuple[Learner, dict[str, Any]]:
    """A learner of `config` with the networks of another run, and what made those."""
    if config.clone_passes:
        raise InputError("a run that begins with trained networks needs no warm start: leave --warm-start out")
    about = _read_about(folder)
    before, learner = make_learner(from_json(about["config"])), make_learner(config)
    load_state(folder, before)
    noise = {key: value.clone() for key, value in learner.actor.log_std.state_dict().items()}
    for name, network in learner.networks.items():
        try:
            network.load_state_dict(before.networks[name].state_dict())
        except RuntimeError:
            raise InputError(f"the {name} of the run {folder} has another shape: keep its layer and width") from None
    learner.actor.log_std.load_state_dict(noise)
    told = ("command", "experts", "config", "first")
    return learner, {"epoch": before.epoch, **{key: about[key] for key in told if key in about}}


def resume_run(folder: Path, database: Path | None = None) -> Run:
    """Continue a run where it stands; `database` only if the file has moved."""
    about = _read_about(folder)
    config = from_json(about["config"])
    experts = open_experts(database or Path(about["experts"]["file"]))
    if str(experts.about["content_sha256"]) != about["experts"]["content_sha256"]:
        raise InputError(f"the run {folder} began with another expert database: name that one or start a new run")
    if about["package"] != __version__:
        log.warning("the run began with version %s; %s may differ in the last digits", about["package"], __version__)
    learner = make_learner(config)
    load_state(folder, learner)
    return _run(folder, about, config, experts, learner)


def open_experts(database: Path) -> ExpertSet:
    """The expert database with something to learn from and something to validate on."""
    if not database.is_file():
        raise InputError(f"there is no expert database {database}: build it with phygail experts --out {database}")
    experts = ExpertSet.open(database)
    for part, name in ((experts.training, "training"), (experts.held_out, "held-out")):
        if not len(part):
            raise InputError(f"{database} has no {name} scenarios: build it with more --cases (11 or more)")
    return experts


def _warm_start(folder: Path, learner: Learner, experts: ExpertSet, config: TrainConfig) -> None:
    """The two parts of cloning, as far as asked for; their errors go into the folder."""
    for name, wanted, part in (("clone", config.clone_passes, clone_experts), ("teach", config.teach_rounds, teach)):
        if not wanted:
            continue
        errors = []
        with one_thread(), live(0, wanted, lambda entry: f"mean squared error {entry['error']:.3f}", name) as show:
            for error in part(learner, experts, config):
                errors.append(error)
                show({"epoch": len(errors), "error": error})
        write_text(folder / f"{name}.json", json.dumps({"mean_squared_error": errors}) + "\n")


def _run(folder: Path, about: Mapping[str, Any], config: TrainConfig, experts: ExpertSet, learner: Learner) -> Run:
    validation = tuple(spread(experts.held_out.scenarios, config.validation_cases))
    facts = {key: about[key] for key in ("package", "profile", "command", "experts", "first") if key in about}
    return Run(folder, config, experts, validation, learner, facts)


def _read_about(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    if not path.exists():
        raise InputError(f"{folder} holds no run: name the folder given to --out")
    try:
        about = read_json(path)
    except InputError:
        about = None
    if not isinstance(about, dict) or about.get("kind") != KIND:
        raise InputError(f"{path} is not the config of a training run: name the folder given to --out")
    return about
