"""The PettingZoo environment: bad input, missing extras, its page and its example."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phygail.config import InputError
from phygail.rng import generator
from phygail.swarm.scenario import draw_scenario, make_scenario

pytest.importorskip("pettingzoo")

from phygail.envs import observation, recovery_v0

ROOT = Path(__file__).parents[2]
HAND = make_scenario(
    "hand", np.array([[0.0, 0.0], [60.0, 0.0], [110.0, 0.0], [240.0, 0.0]]), [2], center=(150.0, 30.0), budget_steps=40
)


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"uavs": 1}, "2 to 10,000"),
        ({"uavs": ()}, "at least one"),
        ({"damage": ()}, "lowest, highest"),
        ({"uavs": 20.5}, "uavs 20.5: give a whole number"),
        ({"damage": "half"}, "damage 'half'"),
        ({"damage": (0.1, 0.2, 0.3)}, "lowest, highest"),
        ({"damage": 1.5}, "from 0 to 1"),
        ({"damage": (0.6, 0.3)}, "lower ratio first"),
        ({"damage": float("nan")}, "damage from nan"),
        ({"uavs": 6, "damage": (0.01, 0.5)}, "lose nobody"),
        ({"width_m": -5.0}, "width -5"),
        ({"scenarios": []}, "nothing to reconnect"),
        ({"scenarios": [HAND], "uavs": 20}, "together with scenarios"),
        ({"render_mode": "human"}, "'human'"),
    ],
)
def test_bad_arguments_are_named(arguments, words):
    with pytest.raises(InputError, match=words):
        recovery_v0.parallel_env(**arguments)


def test_bad_calls_are_named():
    env = recovery_v0.parallel_env(scenarios=[HAND], reward=lambda before, after: np.zeros(7))
    for call in (lambda: env.step({}), env.state):
        with pytest.raises(InputError, match="call reset"):
            call()
    with pytest.raises(InputError, match="seed -1"):
        env.reset(seed=-1)
    env.reset(seed=0)
    good = dict.fromkeys(env.agents, np.zeros(2))
    for actions, words in (
        ({}, "uav_0 has no action"),
        (good | {"uav_2": np.zeros(2)}, "'uav_2' is no agent"),
        (good | {"uav_1": np.zeros(3)}, r"uav_1 has shape \(3,\)"),
        (good, r"reward has shape \(7,\)"),
    ):
        with pytest.raises(InputError, match=words):
            env.step(actions)
    large = draw_scenario(6, 0.34, generator(0))
    for wanted, words in ((large, "at most 4"), (17, "an id or a Scenario"), ("nobody", "no split scenario")):
        with pytest.raises(InputError, match=words):
            env.reset(options={"scenario": wanted})
    with pytest.raises(InputError, match="drawn here"):
        recovery_v0.parallel_env(uavs=6, damage=0.34).reset(options={"scenario": "a1"})


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_a_missing_extra_is_one_line_with_the_remedy():
    code = (
        "import sys; sys.modules['pettingzoo'] = None\n"
        "import phygail.envs\n"
        "try:\n    from phygail.envs import recovery_v0\n"
        "except ValueError as error:\n    print(type(error).__name__, error, error.__suppress_context__)"
    )
    done = run_python(code)
    expected = "InputError the environment needs pettingzoo and gymnasium: pip install 'phygail[env]' True\n"
    assert (done.stdout, done.stderr) == (expected, "")


def test_neither_torch_nor_matplotlib_is_needed_to_fly():
    code = "import sys; from phygail.envs import recovery_v0; print(*{'torch', 'matplotlib'} & set(sys.modules))"
    assert run_python(code).stdout == "\n"


# --- documentation and example ---------------------------------------------------------------------------------------


def test_the_page_shows_the_observation_as_it_is_and_its_example_runs(capsys):
    page = (ROOT / "docs" / "environment.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| (\S+) \.\. (\S+) \|$", page, flags=re.MULTILINE)
    table = observation.OWN + observation.SLOT
    assert rows == [(e.name, e.meaning, f"{e.low:g}", f"{e.high:g}") for e in table]
    assert f"{observation.SIZE} numbers" in page
    (code,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(compile(code, "environment.md", "exec"), {})
    assert "'success': True" in capsys.readouterr().out


def example():
    source = (ROOT / "examples" / "pettingzoo_tiny_policy.py").read_text()
    names = {"__name__": "example"}
    exec(compile(source, "pettingzoo_tiny_policy.py", "exec"), names)
    return names


def test_the_example_trains_the_same_policy_twice():
    names = example()
    names.update(GENERATIONS=2, PAIRS=1)
    brief = [replace(draw_scenario(6, 0.34, generator(k), name=f"{k}"), budget_steps=20) for k in range(3)]
    env = recovery_v0.parallel_env(scenarios=brief)
    first, again = (names["train"](env, np.random.default_rng(0)) for _ in range(2))
    assert np.abs(first).max() > 0
    np.testing.assert_array_equal(first, again)


@pytest.mark.slow
def test_the_example_learns_to_reconnect(capsys):
    example()["main"]()
    before, after = (
        float(re.search(r"return +(\S+),", line).group(1)) for line in capsys.readouterr().out.splitlines()
    )
    assert before < 0
    assert after > before + 30
