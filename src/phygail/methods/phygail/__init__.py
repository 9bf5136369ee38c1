"""PhyGAIL, the paper's method (METHODS 4): `phygail` and `phygail-taught` fly its policies. No torch.

The paper, section by section, with the equations (docs/equations.md) that each file holds:

    III-D  the problem: a command from an observation    here, 7
    IV-B   bounded heterogeneous graph perception        graph.py, 10-16; graph_batch.py for many worlds
    IV-C   physics-informed graph interactions           network.py, 17-24; heads.py, 25-27
    IV-D   expert demonstrations                         experts/, 28
           adversarial imitation                         heads.py, 29-30; gail.py, 31; rewards.py, 32-33
           expert-normalized time, reward design         rewards.py, 34-39, gail.py, 36
           Algorithm 1                                   train.py; rollout.py, mappo.py, learner.py
    IV-E, IV-F and the appendices                        experiments/propositions.py, 40-49
    beyond the paper: `phygail-plus` (METHODS 8.8)       plus.py; plus_batch.py for many worlds

Numbers of a run: config.py. Not the paper's: the warm start in train.py. What flies is here, made by export.py.

A policy that comes with the package becomes a method in a few lines:

    @register
    class Mine(PolicyMethod):
        name = "mine"
        summary = "a physics-gated graph policy of my own"
        policy_name = "mine"
"""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from phygail.config import InputError
from phygail.methods.base import SubnetMethod, register
from phygail.methods.phygail.graph import Graph, GraphSpec, perceive
from phygail.methods.phygail.plus import belief_spec, link_weights, observe_plus, turned_back
from phygail.methods.sidr import AGGREGATED, aggregate
from phygail.methods.steering import MARGIN, keep_links
from phygail.sensing.beliefs import Beliefs, DelayedBeliefs
from phygail.sensing.imperfect import decide_delayed
from phygail.sensing.radio import NUMBER_BYTES, RECORD_BYTES, network_talk
from phygail.sensing.views import SubnetView, SubnetViews
from phygail.sensing.worlds import RebasedBeliefs
from phygail.swarm.simulator import project_speed
from phygail.weights import OnnxPolicy, bundled, read_policy

INPUTS = ("features", "types", "receiver", "sender", "place")
OUTPUT = "action"
KIND, PLUS_KIND = "phygail-actor", "phygail-plus-actor"  # of weight and policy files
VERSION = 1  # of observation and network; files of another version are refused
GRID = 2**16  # commands of a compact network are whole multiples of v_max / GRID, 0.15 mm/s: rounding leaves no trace


class Policy(OnnxPolicy):
    """A policy whose card holds kind, version, graph, observation, encoder, parameters, training.

    Attributes:
        graph_spec: The graph that it reads. dtype: In which precision.
        talk: What its rounds of messages broadcast.
    """

    kind, version, outputs = KIND, VERSION, (OUTPUT,)
    inputs: ClassVar[tuple[str, ...]] = INPUTS
    remedy = "name a file written by `phygail export` of this version"

    def __init__(self, content: bytes, name: str = "policy") -> None:
        super().__init__(content, name)
        self.dtype = self.input_type(INPUTS[0])
        try:
            self.graph_spec = GraphSpec(**json.loads(self.card["graph"]))
            encoder = json.loads(self.card["encoder"])
            self.talk = network_talk(encoder["layers"], encoder["features"], encoder["width"])
        except (KeyError, TypeError, ValueError):
            raise InputError(f"the policy {name} does not say which graph it reads: {self.remedy}") from None

    def __deepcopy__(self, memo: object) -> Policy:
        """Itself: nothing in it changes, so copies of a method share it."""
        return self

    def actions(self, graph: Graph) -> np.ndarray:
        """(n, 2) commands of the receivers over v_max, before the projection onto the speed disc."""
        edges, features = graph.edges, graph.features.astype(self.dtype, copy=False)
        return self.answer(features, graph.types, edges.receiver, edges.sender, edges.place)[0]


@functools.lru_cache(maxsize=8)
def load_policy(path: Path) -> Policy:
    """The policy in a file, loaded once per process."""
    return Policy(read_policy(path), str(path))


class PolicyMethod(SubnetMethod):
    """v_i = v_max times the command of the mean, on the speed disc. Edges never cross subnets: one call for all.

    Attributes:
        policy_name: Of the policy in phygail/weights that flies when the user names no file.
    """

    learned = True
    training = "phygail.methods.phygail.train:train"
    policy_name: ClassVar[str | None] = None

    def __init__(self, rng: np.random.Generator | None = None, *, policy: str | Path | None = None) -> None:
        super().__init__(rng)
        if policy is None and self.policy_name is None:
            raise InputError("there is no policy to fly: name a file written by `phygail export`")
        file = Path(policy) if policy is not None else bundled(str(self.policy_name)).with_suffix(".onnx")
        self.policy = load_policy(file.resolve())
        self.talk = self.policy.talk

    def act(self, view: SubnetView) -> np.ndarray:
        return self._decide(view)

    def act_all(self, views: SubnetViews) -> np.ndarray:
        return self._decide(views)

    def act_imperfect(self, views: SubnetViews) -> np.ndarray:
        return self._decide(views)

    def _decide(self, view: SubnetView | SubnetViews) -> np.ndarray:
        """(n, 2) m/s of all alive: v_i = pi(O_i) (eq. 7)."""
        speed = view.mission.physics.speed_mps
        # Where news is delayed, twins of the rows follow them; the decisions of twins are not flown.
        actions = self.policy.actions(perceive(view, self.policy.graph_spec, self.policy.dtype))[: len(view.members)]
        return project_speed(speed * actions.astype(float), speed)


@register
class Phygail(PolicyMethod):
    """The paper's observation, rewards and learning on swarms of 20, from random weights, without a teacher.

    It flies its network alone. Version 0.1 gave this name to what is `reach-evolved` now.
    """

    name = "phygail"
    summary = "the paper's graph policy, learned from scratch (GAIL and MAPPO on 20 UAVs)"
    policy_name = "phygail"


@register
class PhygailTaught(PolicyMethod):
    """The paper's graph, network and rewards, trained on swarms of 20."""

    name = "phygail-taught"
    stream = "phygail-paper"
    summary = "the paper's physics-gated graph policy, taught by SIDR and trained on 20 UAVs"
    policy_name = "phygail-taught"


class PlusPolicy(Policy):
    """A policy file of `phygail-plus`; its graphs have edge features."""

    kind: ClassVar[str] = PLUS_KIND
    inputs: ClassVar[tuple[str, ...]] = (*INPUTS, "edge")

    def actions(self, graph: Graph) -> np.ndarray:
        """(n, 2 or 3) commands over v_max, turned with the subnets, then the logarithm of a weight in link keeping."""
        edges, features = graph.edges, graph.features.astype(self.dtype, copy=False)
        assert graph.edge is not None
        told = graph.edge[graph.mask].astype(self.dtype, copy=False)
        return self.answer(features, graph.types, edges.receiver, edges.sender, edges.place, told)[0]


@functools.lru_cache(maxsize=8)
def load_plus(path: Path) -> PlusPolicy:
    """The policy in a file, loaded once per process."""
    return PlusPolicy(read_policy(path), str(path))


@register
class PhygailPlus(SubnetMethod):
    """v_i = v_max pi(O_i), turned back out of the subnet's coordinates; its links kept, late flights aggregated.

    The motion is learned from random weights; docs/methods/phygail-plus.md lists what is not learned.
    """

    name = "phygail-plus"
    summary = "a graph policy learned from scratch with what a subnet knows: anchor, beliefs, links kept"
    learned = True
    training = "phygail.methods.phygail.train:train"
    dead_reckons = True
    policy_name: ClassVar[str] = "phygail-plus"

    def __init__(self, rng: np.random.Generator | None = None, *, policy: str | Path | None = None) -> None:
        super().__init__(rng)
        file = Path(policy) if policy is not None else bundled(self.policy_name).with_suffix(".onnx")
        self.policy = load_plus(file.resolve())
        self._spec = belief_spec(self.policy.graph_spec)
        self._beliefs = Beliefs(self._spec)
        self._delayed: DelayedBeliefs | None = None
        # Everybody's place for tree and centroid, a belief about everybody, then the rounds of the network.
        self.talk = replace(self.policy.talk, record_bytes=RECORD_BYTES, roster_bits=8 * NUMBER_BYTES)

    def act(self, view: SubnetView) -> np.ndarray:
        return self.act_all(view.alone())

    def act_all(self, views: SubnetViews) -> np.ndarray:
        if views.mission.losses and not isinstance(self._beliefs, RebasedBeliefs):
            self._beliefs = RebasedBeliefs(self._spec)
        return self._decide(views, self._beliefs)

    def act_imperfect(self, views: SubnetViews) -> np.ndarray:
        if views.news is None:
            return self.act_all(views)
        if self._delayed is None:
            self._delayed = DelayedBeliefs(self._spec, views.news.delay_steps)
        self._delayed.listen_to_others(views)
        commands = decide_delayed(
            views, functools.partial(self._decide, beliefs=self._delayed), reckoned=self.dead_reckons
        )
        self._delayed.tell_others()
        return commands

    def _decide(self, views: SubnetViews, beliefs: Beliefs) -> np.ndarray:
        speed = views.mission.physics.speed_mps
        graph, axes = observe_plus(views, beliefs, self.policy.graph_spec, self.policy.dtype)
        actions = self.policy.actions(graph).astype(float)
        wanted = project_speed(speed * turned_back(actions[:, :2], axes), speed)
        kept = keep_links(views, wanted, link_weights(views, wanted, actions), margin=MARGIN, only=views.asked)
        commands, aggregated = aggregate(views, kept)
        self.flag = AGGREGATED if aggregated else self.flag
        return commands

    def tell(self, member: int) -> np.ndarray | None:
        return self._beliefs.tell(member)

    def hear(self, member: int, news: np.ndarray) -> None:
        self._beliefs.hear(member, news)
