"""The training engine: held commands, packed edges, worlds that go on, what the critic is told."""

import numpy as np
import pytest
import torch

from phygail.config import InputError
from phygail.learning.networks import load_weights
from phygail.learning.run import override
from phygail.methods.phygail import KIND, VERSION
from phygail.methods.phygail.config import PROFILES
from phygail.methods.phygail.experts.dataset import ExpertSet
from phygail.methods.phygail.export import rebuilt
from phygail.methods.phygail.gail import diagnosis, total_reward
from phygail.methods.phygail.graph_batch import join, observe
from phygail.methods.phygail.learner import STATE, make_learner
from phygail.methods.phygail.mappo import annealed_rate, estimate_advantages, node_weights
from phygail.methods.phygail.network import CompactLayer, EncoderSpec, add_messages, sum_messages, to_tensors
from phygail.methods.phygail.rewards import tree_gaps_m
from phygail.methods.phygail.rollout import CaseSource, collect, critic_facts, held_reward, open_worlds
from phygail.methods.phygail.train import check_radio, resume_run, start_run, train
from phygail.rng import generator
from phygail.swarm.batch import BatchWorld, initial_batch
from phygail.swarm.scenario import draw_scenario, make_scenario
from phygail.swarm.simulator import initial_state, step
from phygail.swarm.tree import gap_m, spanning_tree
from phygail.weights import bundled, parse_safetensors

pytestmark = pytest.mark.usefixtures("no_learning_curves", "uncompiled")
SMALL = ["worlds=3", "horizon=6", "width=8", "layers=1", "hold=4", "worlds_go_on=true", "command=disc"]
CONFIG = override(PROFILES.get("smoke"), [*SMALL, "compact=true", "critic_clock=true", "critic_gap=true"])


@pytest.fixture(scope="module")
def experts(database):
    return ExpertSet.open(database).training


def pair(distance_m, name="pair"):
    """Two alive UAVs at a distance and a damaged one."""
    return make_scenario(name, np.array([[0.0, 0.0], [distance_m, 0.0], [60.0, 60.0]]), [2], budget_steps=9)


def test_a_held_command_flies_every_world_like_single_steps_and_waits_where_an_episode_ends():
    """Two meters per step together: 123 m are linked after two steps, 140 m not after four."""
    near, far = pair(123.0, "near"), pair(140.0, "far")
    draws = iter([near, far, pair(150.0, "next")])
    world = BatchWorld(draws, 2)
    toward = np.array([[10.0, 0.0], [-10.0, 0.0]])
    wanted = np.stack([toward, toward])
    states = list(world.hold(lambda _: wanted, 4))
    single = initial_state(far)
    for flown, _ in states:
        single = step(single, toward)
        np.testing.assert_array_equal(flown.positions[1], single.positions)
    assert [moved.tolist() for _, moved in states] == [[True, True], [True, True], [False, True], [False, True]]
    assert [int(flown.steps[0]) for flown, _ in states] == [1, 2, 2, 2]
    np.testing.assert_array_equal(states[3][0].positions[0], states[1][0].positions[0])
    assert [scenario.id for scenario in world.state.scenarios] == ["next", "far"]


def test_a_held_decision_earns_the_discounted_sum_of_its_steps(experts):
    """With gamma 0.5: a world that moves twice earns r_1 + 0.5 r_2, and nothing while it waits."""
    config = override(CONFIG, ["gamma=0.5", "w_il=0"])
    near = pair(123.0)
    world = BatchWorld(iter([near, pair(150.0)]), 1)
    before, toward = world.state, np.array([[[10.0, 0.0], [-10.0, 0.0]]])
    steps = list(world.hold(lambda _: toward, 4))

    class Seen:
        flown, moved = [state for state, _ in steps], [moved for _, moved in steps]

    Seen.before = before
    reward, _ = held_reward(Seen, np.array([2]), config)
    bonus = 20 + 20 * np.exp(1 - 2 / 2.4)
    penalty = -5 / near.budget_steps
    np.testing.assert_allclose(reward, np.full((1, 2), penalty + 0.5 * (penalty + bonus)))


def test_advantages_of_held_decisions_discount_by_their_steps():
    """gamma 0.5, lambda 1, held 2 and 1 steps, V = 1, 2, 4: delta = 1 + 2 / 4 - 1, 3 + 4 / 2 - 2; A = 0.5 + 3 / 4."""
    rewards, values = np.array([[[1.0]], [[3.0]]]), np.array([[[1.0]], [[2.0]]])
    ended, steps = np.zeros((2, 1), dtype=bool), np.array([[2], [1]])
    advantages, targets = estimate_advantages(rewards, values, np.array([[4.0]]), ended, 0.5, 1.0, steps)
    np.testing.assert_allclose(advantages.ravel(), [1.25, 3.0])
    np.testing.assert_allclose(targets.ravel(), [2.25, 5.0])


def test_the_imitation_reward_is_paid_for_every_step_held(experts):
    """Four steps with gamma 0.99 earn 1 + .99 + .9801 + .970299 times it."""
    rollout = collect(make_learner(CONFIG).actor, experts, CONFIG, 1)
    config = override(CONFIG, ["absorbing=false"])
    paid = total_reward(rollout, np.ones(rollout.nodes), config) - total_reward(
        rollout, np.zeros(rollout.nodes), config
    )
    whole = (rollout.steps == 4)[:, :, None] & rollout.alive
    np.testing.assert_allclose(paid[whole], 0.1 * 3.940399 / 20, atol=1e-9)
    assert rollout.steps.max() == 4
    assert rollout.steps.min() >= 1


def graphs(count=5):
    batch = initial_batch([draw_scenario(20, 0.1 + 0.15 * k, generator(7, k), name=str(k)) for k in range(count)])
    return observe(batch, CONFIG.graph_spec)


def test_messages_of_real_edges_add_up_to_those_of_the_slot_table():
    graph = to_tensors(graphs())
    messages = torch.randn(len(graph.receiver), 8)
    torch.testing.assert_close(add_messages(messages, graph), sum_messages(messages, graph))


def test_a_compact_layer_is_its_equation_edge_by_edge():
    """The packed network against a second implementation: one message at a time, in double precision."""
    torch.manual_seed(1)
    graph, layer = to_tensors(graphs(2)), CompactLayer(EncoderSpec(width=8, compact=True)).double()
    h = torch.randn(len(graph.types), 8, dtype=torch.float64)
    expected = h.clone()
    for i in range(graph.receivers):
        total = torch.zeros(8, dtype=torch.float64)
        for j in graph.sender[graph.receiver == i]:
            f = torch.relu(layer.own(h[i]) + layer.sent(h[j]) + layer.kind.weight[graph.types[j]])
            f = torch.relu(layer.out(f))
            attract, repel, strength = layer.force(f)
            total = total + f * torch.nn.functional.softplus(strength) * (attract.sigmoid() - repel.sigmoid())
        expected[i] = h[i] + torch.relu(layer.update(torch.cat([h[i], total])))
    n = graph.receivers
    torch.testing.assert_close(layer(h, graph)[:n], expected[:n])
    torch.testing.assert_close(layer(h, graph, last=True), expected[:n])


def test_edge_features_travel_with_their_edges_through_join_and_pick():
    from dataclasses import replace

    from phygail.methods.phygail.graph_batch import pick

    first, second = (replace(g, edge=np.random.default_rng(g.receivers).random((*g.index.shape, 2), np.float32))
                     for g in (graphs(1), graphs(2)))  # fmt: skip
    both = join([first, second])
    picked, rows = pick(both, np.array([1, 2]))
    np.testing.assert_array_equal(picked.edge, second.edge)
    assert to_tensors(picked).edge.shape == (picked.mask.sum(), 2)
    layer = CompactLayer(EncoderSpec(width=8, compact=True, edge_features=2))
    assert layer(torch.randn(len(picked.types), 8), to_tensors(picked), last=True).shape == (len(rows), 8)


def test_the_small_network_has_sixteen_thousand_parameters_and_the_paper_its_own():
    from phygail.learning.networks import parameter_count

    assert parameter_count(make_learner(PROFILES.get("compact")).actor) == 16_490
    assert parameter_count(make_learner(PROFILES.get("paper-network")).actor) == 722_733


def test_gaps_are_those_of_the_spanning_tree():
    cases = [draw_scenario(20, 0.5 + 0.1 * k, generator(3, k), name=str(k)) for k in range(4)]
    batch = initial_batch(cases)
    total, largest = tree_gaps_m(batch)
    for b, case in enumerate(cases):
        assert total[b] == pytest.approx(gap_m(case.spots, case.physics.range_m))
        lengths = spanning_tree(case.spots)[1]
        assert largest[b] == pytest.approx(max(0.0, lengths.max() - case.physics.range_m))


def test_the_critic_is_told_time_and_gaps_and_nothing_unless_asked():
    batch = initial_batch([pair(140.0)])
    facts = critic_facts(batch, np.array([10]), CONFIG)
    np.testing.assert_allclose(facts, [[0.0, 0.0, np.log(10), 20 / 120, 20 / 120]], rtol=1e-5)
    assert critic_facts(batch, np.array([10]), PROFILES.get("paper")).shape == (1, 0)


def test_worlds_that_go_on_are_loaded_as_they_were_saved(experts):
    rollout = collect(make_learner(CONFIG).actor, experts, CONFIG, 1)
    source = CaseSource(experts, generator(0, "any"), CONFIG)
    world = open_worlds(source, experts, CONFIG, rollout.worlds)
    for name, value in source.save(world.state).items():
        np.testing.assert_array_equal(value, rollout.worlds[name])
    np.testing.assert_array_equal(observe(world.state, CONFIG.graph_spec).features, rollout.after.features)
    following = collect(make_learner(CONFIG).actor, experts, CONFIG, 2, rollout.worlds)
    np.testing.assert_array_equal(following.graph.features[: rollout.after.receivers, :2],
                                  rollout.after.features[: rollout.after.receivers, :2])  # fmt: skip


def test_a_world_of_n_counts_n_to_the_world_weight(experts):
    """0: every world alike; 1, the paper's: every UAV alike."""
    rollout = collect(make_learner(CONFIG).actor, experts, CONFIG, 1)
    world = rollout.graph.world[: rollout.nodes]
    for weight in (0.0, 0.5, 1.0):
        weights = node_weights(rollout, override(CONFIG, [f"world_weight={weight}"]))
        np.testing.assert_allclose(np.bincount(world, weights=weights), np.bincount(world) ** weight, rtol=1e-5)


# --- resuming, and trouble that is named -----------------------------------------------------------------------------

TINY = override(CONFIG, ["worlds=2", "horizon=3", "batch_graphs=6", "ppo_epochs=1", "validation_cases=1", "epochs=4"])


def test_a_run_whose_worlds_go_on_resumes_bit_for_bit(database, tmp_path):
    for name, stops in (("whole", (4,)), ("parts", (1, 3, 4))):
        run = start_run(tmp_path / name, database, TINY)
        for stop in stops:
            train(run, until=stop, tensorboard=False)
            run = resume_run(tmp_path / name)
    whole, parts = ((tmp_path / name / STATE).read_bytes() for name in ("whole", "parts"))
    assert parse_safetensors(whole).keys() == parse_safetensors(parts).keys()
    assert any(name.startswith("worlds/") for name in parse_safetensors(whole))
    assert whole == parts


def test_the_rate_falls_linearly_to_its_share():
    config = override(CONFIG, ["rate=0.002", "rate_last=0.05", "epochs=11"])
    assert [annealed_rate(epoch, config) for epoch in (1, 6, 11)] == pytest.approx([0.002, 0.00105, 0.0001])
    assert annealed_rate(700, PROFILES.get("paper")) == 1e-4


def test_a_second_cycle_of_the_rate_begins_at_half_and_leaves_the_first_as_it_is():
    once = override(CONFIG, ["rate=0.002", "rate_last=0.05", "epochs=11"])
    twice = override(once, ["epochs=22", "cycles=2"])
    assert [annealed_rate(epoch, twice) for epoch in range(1, 12)] == [annealed_rate(k, once) for k in range(1, 12)]
    assert [annealed_rate(epoch, twice) for epoch in (12, 22)] == pytest.approx([0.001, 0.00005])


def log_of(d_expert, d_policy, epochs=20, value=0.1):
    return [{"discriminator": {"d_expert": d_expert, "d_policy": d_policy}, "ppo": {"value": value}}] * epochs


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (log_of(0.9, 0.1), "wins"),
        (log_of(0.5, 0.5), "blind"),
        (log_of(0.7, 0.3), ""),
        (log_of(0.9, 0.1, epochs=19), ""),
        (log_of(0.7, 0.3)[:-1] + log_of(0.7, 0.3, 1, value=26.0), "beyond R_max"),
        (log_of(0.7, 0.3, 1, value=float("nan")), "beyond R_max"),
        ([{"discriminator": {}, "ppo": {"value": 0.1}}] * 30, ""),
    ],
)
def test_trouble_is_named_with_a_remedy(entries, words):
    said = diagnosis(entries, PROFILES.get("compact"))
    assert (words in said) if words else said == ""
    assert not words or ": " in said


def test_demonstrations_with_another_radio_are_refused(experts, database):
    from dataclasses import replace

    check_radio(database, experts)
    other = replace(experts, archive=replace(experts.archive, range_m=experts.archive.range_m * 2))
    with pytest.raises(InputError, match="radio ranges of 240 to 240 m, not 120 to 120 m"):
        check_radio(database, other)


def test_a_run_beyond_the_memory_of_the_machine_is_refused_before_it_begins(database, tmp_path):
    config = override(CONFIG, ["worlds=1000000", "horizon=1000"])
    with pytest.raises(InputError, match=r"1000000 worlds x 1000 decisions need about .* GiB of .*: lower worlds"):
        start_run(tmp_path / "run", database, config)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["tanh", "disc"])
def test_a_policy_is_rebuilt_with_its_own_way_from_u_to_a_command(command, database, tmp_path):
    """The command line of the run, which stands beside it, is another command."""
    config = override(TINY, [f"command={command}", "epochs=1"])
    train(start_run(tmp_path / "run", database, config, command="phygail train phygail --out run"), tensorboard=False)
    _, about = load_weights(tmp_path / "run" / "latest.safetensors", KIND, VERSION)
    assert about["command"] == "phygail train phygail --out run"
    assert rebuilt(about).command == command
    assert rebuilt({key: value for key, value in about.items() if key != "action"}).command == command


def test_the_taught_policy_of_the_package_still_ends_with_tanh():
    for name, command in (("phygail-taught", "tanh"), ("phygail", "disc")):
        _, about = load_weights(bundled(name), KIND, VERSION)
        assert rebuilt(about).command == command
