"""Algorithm 1 of the paper: collect, judge, reward, estimate, learn.

Its run folder (`learning.run`) also has policies/, actors kept along the way.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from phygail import __version__
from phygail.config import LINK_TOLERANCE_M, InputError, Physics
from phygail.files import make_folder, write_text
from phygail.learning.log import Entry, Stopwatch, live, speed_report
from phygail.learning.networks import noise_generator, one_thread
from phygail.learning.run import BEST, LATEST, Score, due, followed, new_folder, read_about, write_about
from phygail.learning.worlds import Pool, draw_pool
from phygail.methods.base import METHODS
from phygail.methods.controller import controller
from phygail.methods.phygail.config import TrainConfig, from_json
from phygail.methods.phygail.experts.dataset import ELEMENTS, ExpertSet
from phygail.methods.phygail.gail import diagnosis, imitation_rewards, total_reward, update_discriminator
from phygail.methods.phygail.graph import Graph
from phygail.methods.phygail.graph_batch import join
from phygail.methods.phygail.heads import Actor
from phygail.methods.phygail.learner import (
    SNAPSHOTS,
    Learner,
    load_state,
    make_learner,
    save_policy,
    save_state,
    spread,
    validate,
)
from phygail.methods.phygail.mappo import annealed_rate, estimate_advantages, evaluate_values, update_policy
from phygail.methods.phygail.network import to_tensors
from phygail.methods.phygail.rollout import (
    CaseSource,
    Rollout,
    check_memory,
    collect,
    exploring,
    on_other_maps,
    open_worlds,
    shuffled,
)
from phygail.rng import generator
from phygail.swarm.batch import BatchState
from phygail.swarm.scenario import Scenario
from phygail.swarm.simulator import project_speed

KIND = "phygail"
TEACHER = "sidr"  # of the warm start

log = logging.getLogger("phygail")


@dataclass(frozen=True, eq=False)
class Run:
    """A run that is ready to train.

    Attributes:
        folder: Where it lives.
        config: Its settings.
        experts: The database or the pool, held-out scenarios included.
        validation: Held-out scenarios to validate on.
        learner: Networks and progress; changes while training.
        facts: Version, command, profile and database, for the JSON of every policy.
    """

    folder: Path
    config: TrainConfig
    experts: ExpertSet | Pool
    validation: tuple[Scenario, ...]
    learner: Learner
    facts: Mapping[str, Any]


def start_run(
    folder: Path,
    database: Path | None,
    config: TrainConfig,
    *,
    first: Path | None = None,
    profile: str = "",
    command: str = "",
) -> Run:
    """Begin a run in a folder that holds none.

    Args:
        folder: Where it will live.
        database: HDF5 file of `phygail experts`; None with a pool.
        config: Settings.
        first: Folder of a run whose networks this one begins with; noise and optimizers begin anew.
        profile: Name of the profile they come from. command: How a user repeats it.
    """
    new_folder(folder)
    experts, told = open_cases(database, config)
    about: dict[str, Any] = {
        "kind": KIND, "package": __version__, "profile": profile, "command": command, "experts": told,
        "config": asdict(config),
    }  # fmt: skip
    check_memory(experts.training, config)
    learner = make_learner(config)
    if first is not None:
        learner, about["first"] = _inherit(first, config)
    make_folder(folder)
    _warm_start(folder, learner, experts.training, config)
    save_state(folder, learner)
    write_about(folder, about)
    return _run(folder, about, config, experts, learner)


def _inherit(folder: Path, config: TrainConfig) -> tuple[Learner, dict[str, Any]]:
    """A learner of `config` with the networks of another run, and what made those."""
    if config.clone_passes:
        raise InputError("a run that begins with trained networks needs no warm start: leave --warm-start out")
    about = read_about(folder, KIND)
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
    about = read_about(folder, KIND)
    config = from_json(about["config"])
    file = about["experts"].get("file")
    experts, told = open_cases(database or (Path(file) if file else None), config)
    if told.get("content_sha256") != about["experts"].get("content_sha256"):
        raise InputError(f"the run {folder} began with another expert database: name that one or start a new run")
    if about["package"] != __version__:
        log.warning("the run began with version %s; %s may differ in the last digits", about["package"], __version__)
    learner = make_learner(config)
    load_state(folder, learner)
    return _run(folder, about, config, experts, learner)


def open_cases(database: Path | None, config: TrainConfig) -> tuple[ExpertSet | Pool, dict[str, Any]]:
    """What a run learns on, and what its folder says about it: a pool of worlds, or an expert database."""
    if config.pool:
        if database is not None:
            raise InputError(f"worlds of a pool need no demonstrations: leave {database} out or set pool=0")
        pool = draw_pool(config.pool, config.pool_seed, config.pool_patience, config.pool_mix)
        return pool, dict(pool.about)
    if database is None:
        raise InputError("no expert database: give --experts FILE.h5; phygail experts --out FILE.h5 builds one")
    experts = open_experts(database)
    return experts, {"file": str(database), "content_sha256": str(experts.about["content_sha256"])}


def open_experts(database: Path) -> ExpertSet:
    """The expert database with something to learn from and something to validate on."""
    if not database.is_file():
        raise InputError(f"there is no expert database {database}: build it with phygail experts --out {database}")
    experts = ExpertSet.open(database)
    check_radio(database, experts)
    for part, name in ((experts.training, "training"), (experts.held_out, "held-out")):
        if not len(part):
            raise InputError(f"{database} has no {name} scenarios: build it with more --cases (11 or more)")
    return experts


def check_radio(database: Path, experts: ExpertSet) -> None:
    """Refuse demonstrations that were flown with another radio than the one the policy will fly with."""
    ranges, usual = experts.archive.range_m, Physics().range_m
    wanted = usual / float(experts.config.get("range_scale", 1.0))
    if len(ranges) and not (ranges.min() >= wanted - LINK_TOLERANCE_M and ranges.max() <= usual + LINK_TOLERANCE_M):
        raise InputError(
            f"{database} was flown with radio ranges of {ranges.min():g} to {ranges.max():g} m, not {wanted:g} to "
            f"{usual:g} m: build it again with phygail experts"
        )


def _warm_start(folder: Path, learner: Learner, experts: ExpertSet | Pool, config: TrainConfig) -> None:
    """Cloning and DAgger, as far as the settings ask for them; their errors go into the folder."""
    for name, wanted, part in (("clone", config.clone_passes, clone_experts), ("teach", config.teach_rounds, teach)):
        if not wanted:
            continue
        assert isinstance(experts, ExpertSet)  # `TrainConfig` asks for it
        errors = []
        with one_thread(), live(0, wanted, lambda entry: f"mean squared error {entry['error']:.3f}", name) as show:
            for error in part(learner, experts, config):
                errors.append(error)
                show({"epoch": len(errors), "error": error})
        write_text(folder / f"{name}.json", json.dumps({"mean_squared_error": errors}) + "\n")


def _run(
    folder: Path, about: Mapping[str, Any], config: TrainConfig, experts: ExpertSet | Pool, learner: Learner
) -> Run:
    validation = tuple(spread(experts.held_out.scenarios, config.validation_cases))
    facts = {key: about[key] for key in ("package", "profile", "command", "experts", "first") if key in about}
    return Run(folder, config, experts, validation, learner, facts)


def train(run: Run, *, until: int | None = None, tensorboard: bool = True) -> Score | None:
    """Train a run to its last epoch, or `until` an earlier one; gives the best validation so far.

    Args:
        run: Of `start_run` or `resume_run`.
        until: Stop after this epoch; the run can be resumed. The result is that of an undisturbed run.
        tensorboard: Write event files beside the log.
    """
    config, learner, experts = run.config, run.learner, run.experts.training
    last = min(config.epochs, until or config.epochs)
    watch = Stopwatch()
    with followed(run.folder, learner.epoch, last, tensorboard=tensorboard) as log:
        for epoch in range(learner.epoch + 1, last + 1):
            learner.set_rate(annealed_rate(epoch, config))
            with watch("collect"):
                rollout = collect(learner.actor, experts, config, epoch, learner.worlds)
            with watch("discriminator"):
                judged = update_discriminator(learner, rollout, experts, config, epoch)
            with watch("rewards"):
                imitation = imitation_rewards(learner.discriminator, rollout, config)  # of the updated discriminator
                rewards = total_reward(rollout, imitation, config)
                values, after = evaluate_values(learner.critic, rollout, config)
                advantages, targets = estimate_advantages(
                    rewards, values, after, rollout.ended, config.gamma, config.gae_lambda, rollout.steps
                )
            with watch("ppo"):
                learned = update_policy(learner, rollout, advantages, targets, config, epoch)
            learner.epoch, learner.worlds = epoch, rollout.worlds if config.worlds_go_on else None
            entry = describe(epoch, rollout, rewards, imitation, values, targets)
            entry |= {"discriminator": judged, "ppo": learned}
            with watch("validation"):
                entry |= keep_best(run)
            entry |= speed_report(watch.lap(), int(rollout.steps.sum()), rollout.graphs)
            entry |= {"diagnosis": diagnosis([*log.recent, entry], config)}
            log.write(entry)
            with watch("save"):
                save_state(run.folder, learner)  # last: what it says is done, is done
    return learner.best


def keep_best(run: Run) -> dict[str, dict[str, float]]:
    """Validate if this epoch is due, save the policies that are; gives the entry of the log."""
    config, learner = run.config, run.learner
    epoch = learner.epoch
    if epoch % config.snapshot_every == 0:
        save_policy(run.folder / SNAPSHOTS / f"epoch-{epoch:05d}.safetensors", learner, config, **run.facts)
    if not due(epoch, config.validate_every, config.epochs):
        return {}
    score = validate(learner.actor, run.validation, config.new_observation())
    facts = {**run.facts, "validation": score.entry()}
    save_policy(run.folder / LATEST, learner, config, **facts)
    if score.better_than(learner.best, "over_bound"):
        learner.best, learner.best_epoch = score, epoch
        save_policy(run.folder / BEST, learner, config, **facts)
    return {"validation": score.entry()}


def describe(
    epoch: int, rollout: Rollout, rewards: np.ndarray, imitation: np.ndarray, values: np.ndarray, targets: np.ndarray
) -> Entry:
    """What an epoch collected, in numbers."""
    target, error = targets[rollout.alive], (targets - values)[rollout.alive]
    return {
        "epoch": epoch,
        "flown": {**rollout.summary, "nodes": rollout.nodes, "world_steps": int(rollout.steps.sum())},
        "reward": {
            "total": float(rewards[rollout.alive].mean()),
            "environment": float(rollout.environment[rollout.alive].mean()),
            "imitation": float(imitation.mean()),
        },
        "value": {
            "mean": float(values[rollout.alive].mean()),
            "explained_variance": 1.0 - float(error.var()) / max(float(target.var()), 1e-12),
        },
    }


# --- optional warm start: behavior cloning of expert frames, then DAgger (METHODS 4.6); a run says so ----------------
#
# Expert frames show only states of experts: a clone that drifts away meets other states and knows no command for them.
# DAgger lets the policy fly and asks a teacher for its command in each state. The teacher is SIDR: it wins most
# scenarios of the paper's pool and needs no memory, so it has a command for any state.


class Cloner:
    """Fits tanh(mean) to wanted commands over v_max. The spread of u is not touched: exploration starts as set."""

    def __init__(self, actor: Actor, config: TrainConfig) -> None:
        self._actor, self._config = actor, config
        self._parameters = [*actor.encoder.parameters(), *actor.mean.parameters()]
        self._optimizer = torch.optim.AdamW(self._parameters, lr=config.clone_rate, weight_decay=config.weight_decay)
        self._total, self._nodes = 0.0, 0

    def learn(self, graph: Graph, wanted: np.ndarray) -> None:
        """One optimizer step on some observations and the (receivers, 2) commands wanted there."""
        error = (self._actor.mean_action(to_tensors(graph)) - torch.from_numpy(wanted)).square().sum(dim=1)
        self._optimizer.zero_grad()
        error.mean().backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
        nn.utils.clip_grad_norm_(self._parameters, self._config.gradient_norm)
        self._optimizer.step()
        self._total, self._nodes = self._total + float(error.detach().sum()), self._nodes + len(error)

    def lap(self) -> float:
        """Mean squared error since the last lap."""
        error = float(np.float32(self._total / max(1, self._nodes)))
        self._total, self._nodes = 0.0, 0
        return error


def clone_experts(learner: Learner, experts: ExpertSet, config: TrainConfig) -> Iterator[float]:
    """Imitate the expert frames; yields the mean squared error of every pass."""
    rng = generator(config.seed, "clone")
    cloner = Cloner(learner.actor, config)
    for _ in range(config.clone_passes):
        for numbers in shuffled(experts.frame_count, config.clone_graphs, rng):
            frames = experts.frames(numbers, rng.integers(len(ELEMENTS), size=len(numbers)))
            frames = on_other_maps(frames, config, rng)
            cloner.learn(frames.graph(config.graph_spec), frames.commands)
        yield cloner.lap()


def teach(learner: Learner, experts: ExpertSet, config: TrainConfig) -> Iterator[float]:
    """Imitate the teacher in the states of the policy; yields the mean squared error of every round.

    A round flies `worlds` x `horizon` steps and learns from them once.
    """
    cloner = Cloner(learner.actor, config)
    steps = max(1, config.clone_graphs // config.worlds)  # of all worlds, per optimizer step
    for number in range(config.teach_rounds):
        lessons = fly_and_ask(learner, experts, config, number)
        for part in shuffled(len(lessons), steps, generator(config.seed, "lessons", number)):
            cloner.learn(join([lessons[k][0] for k in part]), np.concatenate([lessons[k][1] for k in part]))
        yield cloner.lap()


def fly_and_ask(
    learner: Learner, experts: ExpertSet, config: TrainConfig, number: int
) -> list[tuple[Graph, np.ndarray]]:
    """What the exploring policy saw in every step, and what the teacher would have done ((receivers, 2) float32)."""
    world = open_worlds(CaseSource(experts, generator(config.seed, "taught", number), config), experts, config)
    observation, noise = config.new_observation(), noise_generator(config.seed, "taught", number)
    observation.begin(world.state, np.arange(config.worlds))
    flight = exploring(learner.actor, world, observation, noise, config)
    return [(seen.graph, teachers_actions(seen.before)) for seen in flight]


def teachers_actions(state: BatchState) -> np.ndarray:
    """(receivers, 2) float32, the teacher's velocities over v_max in all worlds, within the unit disc."""
    actions = []
    for b, scenario in enumerate(state.scenarios):
        speed = scenario.physics.speed_mps
        wanted = controller(METHODS.get(TEACHER)(), scenario)(state.world(b))
        actions.append(project_speed(wanted, np.array(speed)) / speed)
    return np.concatenate(actions).astype(np.float32)
