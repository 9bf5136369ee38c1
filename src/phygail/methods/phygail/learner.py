"""The learner: networks, optimizers, where a run stands, its validation, and its state on disk.

All randomness derives from (seed, purpose, epoch) and the worlds start anew with every epoch, so networks, optimizers,
the epoch and the best score are everything: a run that is killed and resumed continues bit for bit.

Compact encoders compute in C here, where the machine has a C compiler: functions and gradients of `network`, but for
rounding.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor, nn

from phygail.config import InputError
from phygail.learning.networks import c_library, load_weights, save_weights, seeded
from phygail.learning.run import STATE, Score, cannot_resume, read_state, write_state
from phygail.methods.phygail import KIND, PLUS_KIND, VERSION
from phygail.methods.phygail.config import TrainConfig
from phygail.methods.phygail.export import rebuilt
from phygail.methods.phygail.graph import Graph, GraphSpec
from phygail.methods.phygail.graph_batch import Observation
from phygail.methods.phygail.heads import ACTION, Actor, Critic, Discriminator
from phygail.methods.phygail.network import Gates, GraphEncoder, GraphInput, to_tensors
from phygail.swarm.batch import BatchState, initial_batch, stack_cases, step_batch
from phygail.swarm.scenario import Scenario
from phygail.swarm.tree import bound_steps
from phygail.weights import weights_kind

Decide = Callable[[Graph], np.ndarray]  # actions (receivers, 2) in [-1, 1]

CLOCK_FACTS, GAP_FACTS = 2, 3  # numbers that the critic reads (`rollout.critic_facts`)

SNAPSHOTS = "policies"  # folder of policies kept along the way
FORMAT = 1
_MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what AdamW remembers of a parameter


def spread(scenarios: Sequence[Scenario], count: int) -> list[Scenario]:
    """`count` of the scenarios, evenly spaced (they are ordered by damage); all of them for 0 or too many."""
    if not 0 < count < len(scenarios):
        return list(scenarios)
    return [scenarios[k] for k in np.linspace(0, len(scenarios) - 1, count).round().astype(int)]


def validate(actor: Actor, scenarios: Sequence[Scenario], observation: Observation) -> Score:
    """Fly the mean of the policy on every scenario."""
    success, steps = fly_all(decider(actor), scenarios, observation)
    bounds = sum(bound_steps(scenario.spots, scenario.physics) for scenario in scenarios)
    return Score(float(success.mean()), float(steps.sum()) / max(1, bounds), float(steps.mean()))


def decider(actor: Actor) -> Decide:
    """The mean of a policy."""

    @torch.no_grad()
    def decide(graph: Graph) -> np.ndarray:
        return actor.mean_action(to_tensors(graph)).numpy()

    return decide


def open_actor(weights: Path) -> tuple[Actor, GraphSpec]:
    """The actor that `save_policy` wrote, ready to fly many worlds at once, and which graph it reads."""
    tensors, config = load_weights(weights, weights_kind(weights), VERSION)
    actor = rebuilt(config)
    actor.load_state_dict(tensors)
    speed_up(actor.encoder)
    return actor, GraphSpec(**config["graph"])


def fly_all(
    decide: Decide, scenarios: Sequence[Scenario], observation: Observation
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """(S,) bool success and (S,) int moves of every scenario."""
    state, place = initial_batch(scenarios), np.arange(len(scenarios))
    observation.begin(state, place)
    success, steps = np.zeros(len(place), dtype=bool), np.zeros(len(place), dtype=int)
    while True:
        ended = state.terminated | state.truncated
        success[place[ended]], steps[place[ended]] = state.terminated[ended], state.steps[ended]
        if ended.all():
            return success, steps
        if ended.any():
            state, place = _keep(state, ~ended), place[~ended]
            observation.keep(~ended)
        wanted = observation.wanted(state, decide(observation.observe(state)))
        state = step_batch(state, observation.steer(state, wanted))


def _keep(state: BatchState, wanted: np.ndarray) -> BatchState:
    """The batch without the other worlds."""
    scenarios = tuple(state.scenarios[b] for b in np.flatnonzero(wanted))
    cases = stack_cases(scenarios)
    rows = len(cases.mask)
    positions, velocities = state.positions[wanted, :rows].copy(), state.velocities[wanted, :rows].copy()
    return BatchState(scenarios, cases, positions, velocities, state.steps[wanted])


@dataclass(eq=False)
class Learner:
    """What learns.

    Attributes:
        actor, critic, discriminator: Networks, each with its own encoder.
        optimizers: AdamW per network, by its name.
        epoch: Finished epochs.
        best: Validation of the best policy so far. best_epoch: Its epoch.
        worlds: Where the worlds are (`Rollout.worlds`), if the next epoch flies on from there.
    """

    actor: Actor
    critic: Critic
    discriminator: Discriminator
    optimizers: dict[str, torch.optim.AdamW]
    epoch: int = 0
    best: Score | None = None
    best_epoch: int = 0
    worlds: Mapping[str, np.ndarray] | None = None

    @property
    def networks(self) -> dict[str, nn.Module]:
        """The networks by name."""
        return {"actor": self.actor, "critic": self.critic, "discriminator": self.discriminator}

    def set_rate(self, rate: float) -> None:
        """The rate of all optimizers."""
        for optimizer in self.optimizers.values():
            for group in optimizer.param_groups:
                group["lr"] = rate

    def descend(self, name: str, limit: float) -> float:
        """One optimizer step of a network with the gradients it has, clipped to the norm `limit`; gives their norm."""
        parameters = self.optimizers[name].param_groups[0]["params"]
        norm = float(nn.utils.clip_grad_norm_(parameters, limit))
        if not math.isfinite(norm):
            raise InputError(f"the gradient of the {name} is {norm}: start a new run with a lower rate")
        self.optimizers[name].step()
        self.optimizers[name].zero_grad()
        return norm


def make_learner(config: TrainConfig) -> Learner:
    """Fresh networks and optimizers; equal configs give equal weights."""
    spec = config.encoder_spec
    with seeded(config.seed):
        actor = Actor(
            spec, command=config.command, least_log_std=config.least_log_std, outputs=ACTION + config.link_weight
        )
        extra = CLOCK_FACTS * config.critic_clock + GAP_FACTS * config.critic_gap
        critic = Critic(config.critic_spec, centralized=config.centralized_critic, extra=extra)
        discriminator = Discriminator(config.judge_spec)
    for network in (actor, critic, discriminator):
        speed_up(network.encoder)
    last = actor.log_std[-1]
    assert isinstance(last, nn.Linear)
    nn.init.constant_(last.bias, config.initial_log_std)
    networks: dict[str, nn.Module] = {"actor": actor, "critic": critic, "discriminator": discriminator}
    optimizers = {
        name: torch.optim.AdamW(
            network.parameters(), lr=config.rate, eps=config.adam_epsilon, weight_decay=config.weight_decay, fused=True
        )
        for name, network in networks.items()
    }
    return Learner(actor, critic, discriminator, optimizers)


def save_state(folder: Path, learner: Learner) -> None:
    """Overwrite the full state of a run."""
    tensors: dict[str, Tensor] = {}
    for name, network in learner.networks.items():
        tensors |= {f"{name}/{key}": value.detach().contiguous() for key, value in network.state_dict().items()}
        for number, moments in learner.optimizers[name].state_dict()["state"].items():
            tensors |= {f"optimizer/{name}/{number}/{key}": moments[key].contiguous() for key in _MOMENTS}
    tensors |= {f"worlds/{key}": torch.from_numpy(value.copy()) for key, value in (learner.worlds or {}).items()}
    progress = {
        "format": FORMAT, "epoch": learner.epoch, "best_epoch": learner.best_epoch,
        "best": learner.best.entry() if learner.best else None,
    }  # fmt: skip
    write_state(folder, {name: tensor.numpy() for name, tensor in tensors.items()}, progress)


def load_state(folder: Path, learner: Learner) -> None:
    """Fill a fresh learner with the state of a run."""
    arrays, progress = read_state(folder)
    try:
        tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
        if progress["format"] != FORMAT:
            raise KeyError(f"format {progress['format']}")
        for name, network in learner.networks.items():
            network.load_state_dict(_under(tensors, f"{name}/"))
            _load_moments(learner.optimizers[name], _under(tensors, f"optimizer/{name}/"))
        learner.worlds = {key: value.numpy() for key, value in _under(tensors, "worlds/").items()} or None
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise cannot_resume(folder / STATE, error) from None
    learner.epoch, learner.best_epoch = progress["epoch"], progress["best_epoch"]
    learner.best = Score(**progress["best"]) if progress["best"] else None


def actor_config(actor: Actor, graph_spec: GraphSpec, **training: Any) -> dict[str, Any]:
    """What `save_weights` must store beside an actor so that it can be rebuilt and exported."""
    return {
        "kind": PLUS_KIND if graph_spec.k_lost else KIND, "version": VERSION, "graph": asdict(graph_spec),
        "encoder": asdict(actor.encoder.spec),
        "action": actor.command, "outputs": actor.outputs, **training,
    }  # fmt: skip


def save_policy(path: Path, learner: Learner, config: TrainConfig, **facts: Any) -> None:
    """Write the actor as it is now, ready for `phygail export`, with all that made it in its JSON."""
    about = {"training": asdict(config), "epoch": learner.epoch, **facts}
    save_weights(path, learner.actor.state_dict(), actor_config(learner.actor, config.graph_spec, **about))


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}


def _load_moments(optimizer: torch.optim.Optimizer, moments: dict[str, Tensor]) -> None:
    """Moments by "number/key"; none before the first step."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in moments.items():
        number, key = name.split("/")
        state.setdefault(int(number), {})[key] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


# --- compact encoders in C --------------------------------------------------------------------------------------------

SOURCE = Path(__file__).with_name("compact.c")
WIDTHS, MOST_LAYERS, MOST_FEATURES, MOST_TYPES = (16, 32, 64), 16, 64, 8  # of compact.c
FIRST_PARTS = ("node_type.weight", "node.0.weight", "node.0.bias", "node.2.weight", "node.2.bias")
LAYER_PARTS = (
    "own.weight", "own.bias", "sent.weight", "kind.weight", "out.weight", "out.bias", "force.weight", "force.bias",
    "update.0.weight", "update.0.bias", "update.2.weight", "update.2.bias", "edge.weight", "edge_scale.weight",
)  # fmt: skip


def speed_up(encoder: GraphEncoder) -> bool:
    """Let a compact PhyGNN encoder compute in C from now on, where it can; says whether it does."""
    spec = encoder.spec
    known = spec.compact and spec.layer == "phygnn" and spec.width in WIDTHS
    numbers = max(spec.features, spec.edge_features)
    fits = spec.layers <= MOST_LAYERS and spec.types <= MOST_TYPES and numbers <= MOST_FEATURES
    library = c_library(SOURCE, f"-DW={spec.width}") if known and fits else None
    encoder.kernel = None if library is None else CompactKernel(encoder, library)
    return encoder.kernel is not None


class _Task(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_long) for name in ("layers", "features", "types", "edge_features", "gates")),
        *((name, ctypes.c_long) for name in ("n", "nodes", "edges")),
        *((name, ctypes.c_void_p) for name in ("x", "type", "receiver", "sender", "edge")),
    ]


class CompactKernel:
    """`GraphEncoder.forward` of a compact PhyGNN and its gradient, in a third of the time (compact.c)."""

    def __init__(self, encoder: GraphEncoder, library: ctypes.CDLL) -> None:
        parts: list[nn.Parameter | None] = [encoder.get_parameter(name) for name in FIRST_PARTS]
        for layer in encoder.layers:
            own = dict(layer.named_parameters())
            parts += [own.get(name) for name in LAYER_PARTS]  # None: the layer reads no edge features
        self.slots = [number for number, part in enumerate(parts) if part is not None]
        self.parameters = [part for part in parts if part is not None]
        self.spec, self.library = encoder.spec, library
        self.library.space_floats.restype = self.library.scratch_floats.restype = ctypes.c_long
        self._free: list[Tensor] = []  # what it works in: fresh pages would cost as much as the sums

    def __deepcopy__(self, memo: object) -> None:
        """Nothing: the copy of an encoder has other weights, and computes in torch."""

    def __call__(self, graph: GraphInput) -> Tensor:
        """(n, width), the embeddings of the receivers."""
        if torch.is_grad_enabled():
            embedded: Tensor = _Encode.apply(self, graph, *self.parameters)  # type: ignore[no-untyped-call]
            return embedded
        out, space = self.forward(graph)
        self._free.append(space)
        return out

    def forward(self, graph: GraphInput) -> tuple[Tensor, Tensor]:
        """The embeddings, and what `backward` needs."""
        task, out = self._task(graph), torch.empty(graph.receivers, self.spec.width)
        space = self._room(self.library.space_floats(ctypes.byref(task)))
        self.library.forward(ctypes.byref(task), self._table(self.parameters), _at(space), _at(out))
        return out, space

    def backward(self, graph: GraphInput, space: Tensor, d_out: Tensor) -> list[Tensor]:
        """The gradients of all parameters; `space` is given back."""
        task, sizes = self._task(graph), [parameter.numel() for parameter in self.parameters]
        flat = torch.split(torch.zeros(sum(sizes)), sizes)
        gradients = [part.view_as(parameter) for part, parameter in zip(flat, self.parameters, strict=True)]
        scratch = self._room(self.library.scratch_floats(ctypes.byref(task)))
        tables = self._table(self.parameters), self._table(gradients)
        self.library.backward(ctypes.byref(task), *tables, _at(space), _at(d_out), _at(scratch))
        self._free += [space, scratch]
        return gradients

    def _room(self, floats: int) -> Tensor:
        """At least so many floats that nobody uses."""
        for number, room in enumerate(self._free):
            if room.numel() >= floats:
                return self._free.pop(number)
        self._free.clear()  # all too small
        return torch.empty(floats)

    def _task(self, graph: GraphInput) -> _Task:
        spec, gates = self.spec, get_args(Gates).index(self.spec.gates)
        arrays = (graph.features, graph.types, graph.receiver, graph.sender)
        edge = None if graph.edge is None else _at(graph.edge)
        counts = (graph.receivers, len(graph.types), len(graph.receiver))
        sizes = (spec.layers, spec.features, spec.types, spec.edge_features)
        return _Task(*sizes, gates, *counts, *map(_at, arrays), edge)

    def _table(self, tensors: Sequence[Tensor]) -> Any:
        table = (ctypes.c_void_p * (len(FIRST_PARTS) + MOST_LAYERS * len(LAYER_PARTS)))()
        for slot, tensor in zip(self.slots, tensors, strict=True):
            table[slot] = tensor.data_ptr()
        return table


def _at(values: Tensor) -> ctypes.c_void_p:
    """Where an array is."""
    if not values.is_contiguous() or values.dtype not in (torch.float32, torch.int64):
        raise InputError(f"compact.c reads contiguous float32 and int64, not {values.dtype}: choose compact=false")
    return ctypes.c_void_p(values.data_ptr())


class _Encode(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, kernel: CompactKernel, graph: GraphInput, *parameters: Tensor) -> Tensor:
        out, ctx.space = kernel.forward(graph)
        ctx.kernel, ctx.graph = kernel, graph
        return out

    @staticmethod
    def backward(ctx: Any, *d_out: Tensor) -> tuple[Any, ...]:
        return (None, None, *ctx.kernel.backward(ctx.graph, ctx.space, d_out[0].contiguous()))
