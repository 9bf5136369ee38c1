"""Every number of a PhyGAIL training run in one place (METHODS 4.10), and the named profiles that set them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from types import MappingProxyType
from typing import Any, get_args

from phygail.config import InputError, Registry
from phygail.learning.worlds import MIXES
from phygail.methods.phygail import plus
from phygail.methods.phygail.graph import GRAPHS, PAPER, GraphSpec
from phygail.methods.phygail.graph_batch import OBSERVATIONS, Observation
from phygail.methods.phygail.heads import Command
from phygail.methods.phygail.network import EncoderSpec, Gates, LayerKind
from phygail.methods.phygail.plus_batch import PlusObservation

OBSERVATIONS.add("plus", PlusObservation)


@dataclass(frozen=True)
class TrainConfig:
    """A training run. The defaults are the paper's (profile `paper`); ablations of METHODS 4.7 are single fields."""

    # --- run
    seed: int = 100_000  # of networks, scenarios, noise and batches; results are reported on seeds 0..1000
    epochs: int = 1000  # rounds of collecting and learning
    worlds: int = 32  # scenarios flown at the same time
    horizon: int = 1000  # decisions per world and epoch
    hold: int = 1  # steps that a command is flown while learning; in flight there is a decision every step
    worlds_go_on: bool = False  # True: an epoch flies on where the one before stopped; False: worlds start anew
    validate_every: int = 5  # epochs
    validation_cases: int = 0  # held-out scenarios to validate on, spread evenly over them; 0: all
    snapshot_every: int = 50  # epochs between policies that are kept beside the best and the latest

    # --- networks
    layer: LayerKind = "phygnn"  # message passing; ablations: gcn, gat, sage
    gates: Gates = "both"  # ablations: no-attraction, no-repulsion
    layers: int = 3  # rounds L of messages
    width: int = 128  # d_h
    compact: bool = False  # True: hidden sizes are the width, gates linear, no LayerNorm (network.CompactLayer)
    observation: str = "paper"  # what a policy reads; see methods.phygail.graph_batch.OBSERVATIONS
    graph: str = "paper"  # what a UAV attends to; ablations: see methods.phygail.graph.GRAPHS (of plus: plus.GRAPHS)
    critic_layers: int = 0  # rounds of messages of the critic; 0: as many as the policy
    centralized_critic: bool = True  # False: the critic reads its own embedding only
    critic_clock: bool = False  # True: the critic also reads t / T_max and t / (alpha T_E) (METHODS 4.3, remark iii)
    critic_gap: bool = False  # True: the critic also reads ln T_E and the gaps, largest and summed, in ranges
    command: Command = "tanh"  # from u to a command: tanh(u), or u itself; then the projection onto the speed disc
    initial_log_std: float = 0.0  # of u at the start; 0 is a standard deviation of 1
    link_weight: bool = False  # True: a third number of the action is the weight in link keeping (observation plus)
    shared_noise: float = 0.0  # share of the variance of u that the members of a subnet have in common while learning
    least_log_std: float = -2.0  # lower clamp of the log-std; the upper one is 0.5

    # --- domain randomization of 20-UAV scenarios (methods.phygail.rollout)
    map_scale: float = 1.0  # maps are up to this many times as wide as the swarm's own (log-uniform)
    map_shift: float = 0.0  # the center is off the middle of the swarm by up to this share of half its width, per axis

    # --- worlds of at most 20 flying, cut out of larger swarms (learning.worlds)
    pool: int = 0  # so many instead of the scenarios of a database; no demonstrations are needed then
    pool_seed: int = 500_000  # that draws them
    pool_mix: str = "near"  # how many of which kind (learning.worlds.MIXES)
    pool_patience: float = 3.0  # their budgets: at most so many T_E and 60 steps

    # --- rewards, before the division by reward_scale
    w_il: float = 0.1  # weight of the imitation reward; 0 leaves GAIL out
    r_base: float = 20.0  # for success
    r_time: float = 20.0  # for success, times eta(t)
    decay: float = 1.0  # lambda of eta
    tolerance: float = 1.2  # alpha of eta: tolerated multiple of the expert's time
    eta_max: float = 3.0  # cap of eta
    expert_time: bool = True  # False: eta measures against T_max instead of alpha T_E
    step_penalty: float = 5.0  # r_step = -step_penalty / T_max per step
    step_cost: float = 0.0  # and this per step, the same in all worlds, however long their flights
    w_col: float = 0.01  # per meter that a pair is closer than safe_m, per step
    safe_m: float = 15.0  # D_safe of vehicles with a contact distance of 10 m; that of others is in proportion
    p_fail: float = 5.0  # per subnet that is left at T_max
    reward_scale: float = 20.0  # rewards are divided by this
    reward_limit: float = 5.0  # R_max: and then clipped to +- this
    absorbing: bool = False  # credit success with the imitation reward of the steps saved (docs/training-decisions.md)
    gap_weight: float = 0.0  # per meter at a range of 120 m: potential-based shaping with -gap(P); 0 leaves it out

    largest_gap_weight: float = 0.0  # in R: the same with the largest gap over 2 T_E strides; 0 leaves it out

    # --- discriminator
    target_expert: float = 0.9  # soft label of experts
    target_policy: float = 0.1  # soft label of the policy
    judged_share: float = 1.0  # of the rollout that the discriminator learns from in every epoch
    action_noise: float = 0.1  # of v_max: noise on the commands of both classes while it learns

    # --- PPO
    gamma: float = 0.99  # discount per step
    gae_lambda: float = 0.95
    ppo_epochs: int = 5  # passes over the rollout
    ratio_clip: float = 0.2
    entropy_first: float = 0.05  # weight of the entropy of u, nats
    entropy_last: float = 0.005
    entropy_share: float = 0.45  # of the epochs: over these it falls linearly
    world_weight: float = 1.0  # a world of n UAVs counts n^this in PPO's losses: 1 every UAV alike, 0 every world
    critic_only_epochs: int = 0  # at the start: a warm-started actor waits for its critic

    # --- optimizers (AdamW, betas 0.9 and 0.999)
    rate: float = 1e-4  # of actor, critic and discriminator
    rate_last: float = 1.0  # the rate falls linearly to this share of itself
    cycles: int = 1  # so often; every time it begins at half the rate of the time before
    adam_epsilon: float = 1e-8
    weight_decay: float = 5e-5
    gradient_norm: float = 1.0  # gradients are clipped to this, per network
    actor_norm: float = 1.0  # those of the actor
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
        choices = {
            "layer": get_args(LayerKind),
            "gates": get_args(Gates),
            "graph": GRAPHS if self.observation == "paper" else plus.GRAPHS,
            "command": get_args(Command),
            "pool_mix": MIXES,
        }
        OBSERVATIONS.get(self.observation)
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise InputError(f"{name} {getattr(self, name)!r}: there are {', '.join(known)}")
        if self.pool and self.w_il:
            raise InputError(f"w_il {self.w_il}: nobody has flown the worlds of a pool, set w_il=0 or pool=0")
        if self.observation != "paper" and (self.clone_passes or self.teach_rounds):
            raise InputError(f"observation {self.observation}: only the paper's has a warm start, leave it out")
        if not self.absorbing and self.w_il * math.log(2.0) >= (1.0 - self.gamma) * self.r_base:
            raise InputError(
                f"w_il {self.w_il} with gamma {self.gamma} and r_base {self.r_base} makes waiting worth more than "
                "success: set absorbing=true or lower w_il"
            )

    @property
    def graph_spec(self) -> GraphSpec:
        """What a UAV attends to."""
        return GRAPHS[self.graph] if self.observation == "paper" else plus.GRAPHS[self.graph]

    @property
    def encoder_spec(self) -> EncoderSpec:
        """The encoder of each network."""
        seen = OBSERVATIONS.get(self.observation)
        return EncoderSpec(
            self.layer, self.layers, self.width, seen.features, seen.types, self.gates,
            compact=self.compact, edge_features=seen.edge_features,
        )  # fmt: skip

    @property
    def critic_spec(self) -> EncoderSpec:
        """The encoder of the critic."""
        return replace(self.encoder_spec, layers=self.critic_layers or self.layers)

    @property
    def judge_spec(self) -> EncoderSpec:
        """The encoder of the discriminator, which always reads the paper's graph: that is what demonstrations hold."""
        paper = OBSERVATIONS.get("paper")
        return replace(self.encoder_spec, features=paper.features, types=paper.types, edge_features=0)

    @property
    def judge_graph(self) -> GraphSpec:
        """What the discriminator sees of a UAV."""
        return self.graph_spec if self.observation == "paper" else PAPER

    def new_observation(self) -> Observation:
        """What follows a batch of worlds and sees for the policy."""
        return OBSERVATIONS.get(self.observation)(self.graph_spec)


_MANY = 10**9
_BOUNDS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        **dict.fromkeys(("epochs", "worlds", "horizon", "validate_every", "snapshot_every", "cycles"), (1, _MANY)),
        **dict.fromkeys(("ppo_epochs", "batch_graphs", "micro_graphs", "clone_graphs"), (1, _MANY)),
        **dict.fromkeys(("seed", "validation_cases", "critic_only_epochs", "clone_passes", "teach_rounds"), (0, _MANY)),
        **dict.fromkeys(("layers",), (1, 16)),
        **dict.fromkeys(("critic_layers",), (0, 16)),
        **dict.fromkeys(("hold",), (1, 1000)),
        **dict.fromkeys(("width",), (4, 4096)),
        **dict.fromkeys(("initial_log_std", "least_log_std"), (-5.0, 0.5)),
        **dict.fromkeys(("w_il", "r_base", "r_time", "decay", "eta_max", "step_penalty", "step_cost"), (0.0, 1e6)),
        **dict.fromkeys(("largest_gap_weight", "w_col"), (0.0, 1e6)),
        **dict.fromkeys(("pool", "pool_seed"), (0, _MANY)),
        **dict.fromkeys(("safe_m", "p_fail", "gap_weight", "action_noise", "weight_decay"), (0.0, 1e6)),
        **dict.fromkeys(("tolerance", "reward_scale", "reward_limit", "gradient_norm", "actor_norm"), (1e-6, 1e6)),
        **dict.fromkeys(
            (
                "target_expert",
                "target_policy",
                "gae_lambda",
                "shared_noise",
                "entropy_share",
                "judged_share",
                "world_weight",
            ),
            (0.0, 1.0),
        ),
        **dict.fromkeys(("map_scale", "pool_patience"), (1.0, 100.0)),
        **dict.fromkeys(("map_shift",), (0.0, 100.0)),
        **dict.fromkeys(("shared_noise",), (0.0, 1.0)),
        **dict.fromkeys(("gamma",), (0.0, 1.0 - 1e-9)),
        **dict.fromkeys(("ratio_clip",), (1e-6, 0.99)),
        **dict.fromkeys(("entropy_first", "entropy_last"), (0.0, 10.0)),
        **dict.fromkeys(("rate", "clone_rate", "rate_last", "adam_epsilon"), (0.0, 1.0)),
    }
)

PROFILES: Registry[TrainConfig] = Registry("profile")
PROFILES.add("paper", TrainConfig())
# Learns while one watches: five minutes of one core (METHODS 4.12 lists what deviates from the paper).
PROFILES.add(
    "compact",
    TrainConfig(
        epochs=300, worlds=128, horizon=16, hold=4, worlds_go_on=True, validate_every=10, validation_cases=90,
        snapshot_every=20, layers=2, width=32, compact=True, critic_clock=True, critic_gap=True, command="disc",
        initial_log_std=-0.7, least_log_std=-3.0, map_scale=3.0, absorbing=True, judged_share=0.5, ppo_epochs=3,
        world_weight=0.5, entropy_first=0.003, entropy_last=0.003, rate=2e-3, rate_last=0.05, cycles=2,
        adam_epsilon=1e-5, actor_norm=0.5, batch_graphs=128, micro_graphs=128,
    ),
)  # fmt: skip
# The same recipe with the network of the paper: an hour or more of one core.
PROFILES.add(
    "paper-network",
    replace(PROFILES.get("compact"), layers=3, width=128, compact=False, rate=5e-4, micro_graphs=64),
)
# Observation, worlds and links beyond the paper (METHODS 8.8), no GAIL: seven minutes of one core.
PROFILES.add(
    "plus",
    replace(
        PROFILES.get("compact"), observation="plus", graph="plus-no-damaged", critic_layers=1, pool=3600, w_il=0.0,
        absorbing=False, largest_gap_weight=2.0, hold=8, gamma=0.995, map_scale=1.0, epochs=120, cycles=1,
        validate_every=20, validation_cases=0,
    ),
)  # fmt: skip
# Shows in seconds that everything works; learns nothing worth flying.
PROFILES.add(
    "smoke",
    TrainConfig(
        epochs=4, worlds=4, horizon=24, ppo_epochs=2, batch_graphs=48, micro_graphs=32, width=16, layers=2,
        validate_every=2, validation_cases=4, snapshot_every=4, absorbing=True,
    ),
)  # fmt: skip


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
