"""Every number of a PhyGAIL training run in one place (METHODS 4.10), and the named profiles that set them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from phygail.config import InputError
from phygail.models.encoders import EncoderSpec, LayerKind
from phygail.models.phygnn import Gates
from phygail.perception.graph import GRAPHS, GraphSpec
from phygail.registry import Registry

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True)
class TrainConfig:
    """A training run. The defaults are the paper's (profile `paper`); ablations of METHODS 4.7 are single fields."""

    # --- run
    seed: int = 100_000  # of networks, scenarios, noise and batches; results are reported on seeds 0..1000
    epochs: int = 1000  # rounds of collecting and learning
    worlds: int = 32  # scenarios flown at the same time
    horizon: int = 1000  # steps per world and epoch; worlds start anew at every epoch
    validate_every: int = 5  # epochs
    validation_cases: int = 0  # held-out scenarios to validate on, spread evenly over them; 0: all
    snapshot_every: int = 50  # epochs between policies that are kept beside the best and the latest

    # --- networks
    layer: LayerKind = "phygnn"  # message passing; ablations: gcn, gat, sage
    gates: Gates = "both"  # ablations: no-attraction, no-repulsion
    layers: int = 3  # rounds L of messages
    width: int = 128  # d_h
    graph: str = "paper"  # what a UAV attends to; ablations: see perception.graph.GRAPHS
    centralized_critic: bool = True  # False: the critic reads its own embedding only
    critic_clock: bool = False  # True: the critic also reads t / T_max and t / (alpha T_E) (METHODS 4.3, remark iii)
    initial_log_std: float = 0.0  # of u at the start; 0 is a standard deviation of 1

    # --- domain randomization of 20-UAV scenarios (training.maps)
    map_scale: float = 1.0  # maps are up to this many times as wide as the swarm's own (log-uniform)
    map_shift: float = 0.0  # the center is off the middle of the swarm by up to this share of half its width, per axis

    # --- rewards, before the division by reward_scale
    w_il: float = 0.1  # weight of the imitation reward; 0 leaves GAIL out
    r_base: float = 20.0  # for success
    r_time: float = 20.0  # for success, times eta(t)
    decay: float = 1.0  # lambda of eta
    tolerance: float = 1.2  # alpha of eta: tolerated multiple of the expert's time
    eta_max: float = 3.0  # cap of eta
    expert_time: bool = True  # False: eta measures against T_max instead of alpha T_E
    step_penalty: float = 5.0  # r_step = -step_penalty / T_max per step
    w_col: float = 0.01  # per meter that a pair is closer than safe_m, per step
    safe_m: float = 15.0  # D_safe
    p_fail: float = 5.0  # per subnet that is left at T_max
    reward_scale: float = 20.0  # rewards are divided by this
    reward_limit: float = 5.0  # R_max: and then clipped to +- this
    absorbing: bool = False  # credit success with the imitation reward of the steps saved (`rewards`, docs/training.md)
    gap_weight: float = 0.0  # per meter: potential-based shaping with -gap(P); 0 leaves it out

    # --- discriminator
    target_expert: float = 0.9  # soft label of experts
    target_policy: float = 0.1  # soft label of the policy
    action_noise: float = 0.1  # of v_max: noise on the commands of both classes while it learns

    # --- PPO
    gamma: float = 0.99  # discount per step
    gae_lambda: float = 0.95
    ppo_epochs: int = 5  # passes over the rollout
    ratio_clip: float = 0.2
    entropy_first: float = 0.05  # weight of the entropy of u, nats
    entropy_last: float = 0.005
    entropy_share: float = 0.45  # of the epochs: over these it falls linearly
    critic_only_epochs: int = 0  # at the start: a warm-started actor waits for its critic

    # --- optimizers (AdamW, betas 0.9 and 0.999)
    rate: float = 1e-4  # of actor, critic and discriminator
    weight_decay: float = 5e-5
    gradient_norm: float = 1.0  # gradients are clipped to this, per network
    batch_graphs: int = 4096  # observations of whole worlds per optimizer step
    micro_graphs: int = 64  # of these at once, gradients add up; 32 and 64 were the fastest of 16 to 256 on a CPU

    # --- warm start: behavior cloning of the actor's mean on the expert frames
    clone_passes: int = 0  # passes over the frames; 0 leaves it out
    clone_rate: float = 3e-4
    clone_graphs: int = 64  # frames per optimizer step
    teach_rounds: int = 0  # then this many flights of its own with SIDR saying what it would do there (`teach`)

    def __post_init__(self) -> None:
        for name, (low, high) in _BOUNDS.items():
            value = getattr(self, name)
            if not (math.isfinite(value) and low <= value <= high):
                raise InputError(f"{name} {value}: choose from {low:g} to {high:g}")
        for name, known in (("layer", get_args(LayerKind)), ("gates", get_args(Gates)), ("graph", tuple(GRAPHS))):
            if getattr(self, name) not in known:
                raise InputError(f"{name} {getattr(self, name)!r}: there are {', '.join(known)}")
        if not self.absorbing and self.w_il * math.log(2.0) >= (1.0 - self.gamma) * self.r_base:
            raise InputError(
                f"w_il {self.w_il} with gamma {self.gamma} and r_base {self.r_base} makes waiting worth more than "
                "success: set absorbing=true or lower w_il"
            )

    @property
    def graph_spec(self) -> GraphSpec:
        """What a UAV attends to."""
        return GRAPHS[self.graph]

    @property
    def encoder_spec(self) -> EncoderSpec:
        """The encoder of each network."""
        return EncoderSpec(layer=self.layer, layers=self.layers, width=self.width, gates=self.gates)


_MANY = 10**9
_BOUNDS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        **dict.fromkeys(("epochs", "worlds", "horizon", "validate_every", "snapshot_every"), (1, _MANY)),
        **dict.fromkeys(("ppo_epochs", "batch_graphs", "micro_graphs", "clone_graphs"), (1, _MANY)),
        **dict.fromkeys(("seed", "validation_cases", "critic_only_epochs", "clone_passes", "teach_rounds"), (0, _MANY)),
        **dict.fromkeys(("layers",), (1, 16)),
        **dict.fromkeys(("width",), (4, 4096)),
        **dict.fromkeys(("initial_log_std",), (-2.0, 0.5)),  # the actor's own clamps
        **dict.fromkeys(("w_il", "r_base", "r_time", "decay", "eta_max", "step_penalty", "w_col"), (0.0, 1e6)),
        **dict.fromkeys(("safe_m", "p_fail", "gap_weight", "action_noise", "weight_decay"), (0.0, 1e6)),
        **dict.fromkeys(("tolerance", "reward_scale", "reward_limit", "gradient_norm"), (1e-6, 1e6)),
        **dict.fromkeys(("target_expert", "target_policy", "gae_lambda", "entropy_share"), (0.0, 1.0)),
        **dict.fromkeys(("map_scale",), (1.0, 100.0)),
        **dict.fromkeys(("map_shift",), (0.0, 100.0)),
        **dict.fromkeys(("gamma",), (0.0, 1.0 - 1e-9)),
        **dict.fromkeys(("ratio_clip",), (1e-6, 0.99)),
        **dict.fromkeys(("entropy_first", "entropy_last"), (0.0, 10.0)),
        **dict.fromkeys(("rate", "clone_rate"), (0.0, 1.0)),
    }
)

PROFILES: Registry[TrainConfig] = Registry("profile")
PROFILES.add("paper", TrainConfig())
# Two cores (METHODS 4.6). 8 worlds x 256 steps are a sixteenth of the paper's epoch.
PROFILES.add(
    "cpu",
    TrainConfig(epochs=400, worlds=8, horizon=256, ppo_epochs=3, batch_graphs=512, validation_cases=90, absorbing=True),
)
# Shows in seconds that everything works; learns nothing worth flying.
PROFILES.add(
    "smoke",
    TrainConfig(
        epochs=4, worlds=4, horizon=24, ppo_epochs=2, batch_graphs=48, micro_graphs=32, width=16, layers=2,
        validate_every=2, validation_cases=4, snapshot_every=4, absorbing=True,
    ),
)  # fmt: skip


_Config = TypeVar("_Config", bound="DataclassInstance")


def override(config: _Config, settings: Iterable[str]) -> _Config:
    """A config with settings like "gamma=0.995", "graph=no-center" or "sizes=20,50"; an unknown name is an error."""
    known: Registry[Any] = Registry("setting")
    for field in fields(config):
        known.add(field.name, getattr(config, field.name))
    changes = {}
    for setting in settings:
        name, sign, text = setting.partition("=")
        if not sign:
            raise InputError(f"setting {setting!r}: write NAME=VALUE")
        changes[name.strip()] = _like(known.get(name.strip()), name, text.strip())
    return replace(config, **changes)


def from_json(values: Mapping[str, Any]) -> TrainConfig:
    """The config that `asdict` once wrote. Fields it lacks are newer: their defaults are what was done before."""
    odd = sorted(set(values) - {field.name for field in fields(TrainConfig)})
    if odd:
        raise InputError(f"the saved config has fields unknown to this version ({', '.join(odd)}): start a new run")
    return TrainConfig(**values)


def differences(a: TrainConfig, b: TrainConfig) -> str:
    """The fields in which two configs differ, for a reader."""
    before, after = asdict(a), asdict(b)
    return ", ".join(f"{name} {before[name]} -> {after[name]}" for name in before if before[name] != after[name])


def _like(default: Any, name: str, text: str) -> Any:
    """`text` as a value of the same type as `default`."""
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise InputError(f"{name} {text!r}: choose true or false")
        return text.lower() == "true"
    if isinstance(default, str):
        return text
    if isinstance(default, tuple):
        return tuple(_like(default[0], name, part.strip()) for part in text.split(","))
    kind, word = (int, "a whole number") if isinstance(default, int) else (float, "a number")
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"{name} {text!r}: give {word}") from None
