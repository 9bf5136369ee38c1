import numpy as np
import pytest

from phygail.methods.controller import run_episode
from phygail.methods.reach_evolved import GateShape, evaluate_anchors, evaluate_edges
from phygail.methods.reach_evolved import lessons as module
from phygail.methods.reach_evolved.lessons import clone_reach, watch_reach
from phygail.swarm.scenario import draw_scenario

SHAPE = GateShape()


@pytest.fixture
def few_worlds(monkeypatch):
    """Swarms of 20 only, whose layouts are drawn at once."""

    def draw(count, seed, *key):
        return [draw_scenario(20, 0.6, np.random.default_rng([seed, k])) for k in range(count)]

    monkeypatch.setattr(module, "draw_worlds", draw)


def test_a_lesson_is_what_reach_commanded_at_every_step():
    scenario = draw_scenario(20, 0.6, np.random.default_rng(0))
    lessons = list(watch_reach(scenario))
    states = run_episode(scenario, "reach", record=True).states
    assert len(lessons) == min(len(states) - 1, module.LONGEST_FLIGHT)
    for lesson, then in zip(lessons, states[1:], strict=False):
        np.testing.assert_allclose(lesson.command * 10.0, then.velocities, atol=1e-9)
        assert np.hypot(*lesson.base.T).max() <= 1.0 + 1e-9
        assert len(lesson.anchors) == len(lesson.base) == lesson.subnet.max() + 1


def test_the_error_is_that_of_the_numpy_gates():
    import torch

    lessons = list(watch_reach(draw_scenario(20, 0.6, np.random.default_rng(1))))[:3]
    layers = module._initial(SHAPE, np.random.default_rng(0))
    found = module._errors([torch.tensor(part) for part in layers], lessons).numpy()
    wanted = []
    for lesson in lessons:
        strength = evaluate_edges(tuple(layers), lesson.features) * lesson.weight
        command = (lesson.base * evaluate_anchors(tuple(layers), lesson.anchors)[0][:, None])[lesson.subnet]
        np.add.at(command, lesson.receiver, strength[:, None] * lesson.direction)
        command = command / np.maximum(np.linalg.norm(command, axis=1), 1.0)[:, None]
        wanted.append(((command - lesson.command) ** 2).sum(axis=1))
    np.testing.assert_allclose(found, np.concatenate(wanted), atol=1e-5)


def test_the_error_falls_and_the_clone_repeats(few_worlds):
    vector, errors = clone_reach(SHAPE, 5, worlds=4, passes=4, batch=16)
    assert vector.shape == (SHAPE.size,)
    assert np.isfinite(vector).all()
    assert errors[-1] < 0.8 * errors[0]
    again, _ = clone_reach(SHAPE, 5, worlds=4, passes=4, batch=16)
    assert np.array_equal(vector, again)
