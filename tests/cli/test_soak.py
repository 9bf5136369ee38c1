"""`phygail soak`, its cases and its checker, and the flags of worlds on the command line."""

import json

import numpy as np
import pytest

from phygail.cli.main import main
from phygail.cli.soak import _limits, flown_by, fly_batch
from phygail.config import InputError
from phygail.methods.controller import run_episode
from phygail.swarm.links import find_links
from phygail.swarm.recipe import parse_world, with_world
from phygail.swarm.scenario import load_scenarios
from phygail.swarm.soak import KINDS, Limits, closest_m, faults, is_split, soak_case, subnets, world_faults

pytestmark = pytest.mark.xdist_group("numba")  # compiled once, not by every worker


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_draws_cases_without_contacts(kind):
    cases = [soak_case(4, number, kinds=(kind,)) for number in range(12)]
    assert any(map(is_split, cases))
    for case in cases:
        i, j = np.triu_indices(case.uavs, 1)
        assert np.hypot(*(case.layout[i] - case.layout[j]).T).min() >= case.physics.contact_m * (1 - 1e-9)
        assert len(case.alive) >= 2
        assert soak_case(4, int(case.id.split("-")[-2]), kinds=(kind,)).layout.tobytes() == case.layout.tobytes()


def test_the_checker_finds_what_is_wrong():
    """A flight of two that is good, and one for each fault."""
    good = np.array([[[0.0, 0.0], [121.5, 0.0]], [[0.5, 0.0], [121.0, 0.0]], [[1.0, 0.0], [120.5, 0.0]]])
    limits = {"range_m": 120.0, "stride_m": 1.0, "contact_m": 10.0, "filtered": True}
    assert faults(good, **limits) == []
    assert "overspeed" in faults(good * [1.0, 1.0] + np.array([0, 1.1, 2.2])[:, None, None], **limits)[0]
    assert "not a number" in faults(np.where(good == 0.5, np.nan, good), **limits)[0]
    assert "still 2 subnets" in faults(good[:2], **limits)[0]
    late = np.concatenate([good, good[-1:]])
    assert "a step before" in faults(late, **limits)[0]
    passing = np.array([[[0.0, 0.0], [0.0, 12.0]], [[0.5, 0.0], [0.5, 1.0]]])
    assert any("contact" in fault for fault in faults(passing, **(limits | {"stride_m": 20.0})))


def test_contact_is_found_between_steps():
    """Two that cross at 0.5 s apart are 1 m from each other in between, 20 m at both ends."""
    crossing = np.array([[[0.0, 0.0], [20.0, 1.0]], [[20.0, 0.0], [0.0, 1.0]]])
    assert closest_m(crossing)[0] == pytest.approx(1.0)


def test_the_checker_counts_subnets_like_the_simulator():
    rng = np.random.default_rng(5)
    for _ in range(30):
        points = rng.uniform(0, 700, (25, 2))
        assert subnets(points, 120.0) == find_links(points, 120.0).count


def test_the_checker_knows_walls_losses_and_acceleration():
    limits = Limits(1.0, 10.0, 0.0, discs=((50.0, 0.0, 5.0),), walls=((0.0, 20.0, 0.0, 40.0, 2.0),), change_m=0.05)
    names = [np.array([0, 1, 2]), np.array([0, 2])]
    start = np.array([[40.0, 0.0], [80.0, 0.0], [10.0, 30.0]])
    assert world_faults(names, [start, start[[0, 2]]], limits) == []
    assert "obstacle" in world_faults(names, [start, np.array([[40.5, 0.0], [1.0, 30.0]])], limits)[1]
    three = [start[[0, 2]], start[[0, 2]] + [0.9, 0], start[[0, 2]]]
    assert any("acceleration" in fault for fault in world_faults([names[1]] * 3, three, limits))


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("number", [19, 29, 35, 51])  # 9 to 14 UAVs: off the center, a lattice, a ring, anywhere
def test_the_twin_is_held_to_the_method(number):
    """It and the method end after the same steps on the same adversarial cases; here Python runs the twin itself."""
    found, case = fly_batch(number, 1, 11, "reach-evolved", "", False), soak_case(11, number)
    assert is_split(case)
    assert found["failures"] == []
    assert found["steps"] == run_episode(case, "reach-evolved").steps


@pytest.mark.slow  # Numba compiles the twin for half a minute
def test_the_compiled_twin_is_held_to_the_method():
    """The twin and the method end after the same steps on the same adversarial cases."""
    pytest.importorskip("numba")
    for number in range(9):
        case = soak_case(11, number)
        if is_split(case) and len(case.alive) < 25:
            found = fly_batch(number, 1, 11, "reach-evolved", "", False)
            assert found["failures"] == []
            assert found["steps"] == run_episode(case, "reach-evolved").steps, case.id


def test_soak_resumes_and_keeps_its_settings(tmp_path, capsys):
    words = ["soak", "--method", "sidr", "--out", str(tmp_path / "s"), "--seed", "3"]
    assert main([*words, "--episodes", "4"]) == 0
    assert main([*words, "--episodes", "8"]) == 0
    assert json.loads((tmp_path / "s" / "soak.json").read_text())["done"] == 8
    assert "8 episodes" in capsys.readouterr().out
    assert main([*words[:-1], "9", "--episodes", "8"]) == 2
    assert "holds another soak" in capsys.readouterr().err


def test_failures_of_a_soak_are_saved_as_scenarios(tmp_path, capsys):
    """hero gives up by design: its failures come out as files that fly again."""
    assert main(["soak", "--method", "hero", "--episodes", "3", "--out", str(tmp_path)]) == 1
    (first, *_) = sorted(tmp_path.glob("soak-*.json"))
    (case,) = load_scenarios(first)
    assert not run_episode(case, "hero").terminated
    assert "failures, saved in" in capsys.readouterr().out


def test_soak_says_what_flies():
    pytest.importorskip("numba")
    assert "itself flies" in flown_by("sidr", "", safety=False)
    assert "does not know wind" in flown_by("reach-evolved", "hold=2 wind=3", safety=False)
    assert "does not know inertia with the filter" in flown_by("reach-evolved", "accel=3", safety=True)
    for spec, safety in (("", True), ("hold=2", False), ("accel=3", False), ("waves=3:40:150", True)):
        assert flown_by("reach-evolved", spec, safety=safety) == "the compiled twin of reach-evolved flies"


TWIN_WORLDS = [
    ("", True), ("waves=2:20:100", False), ("trickle=0.3:60", True), ("accel=3 lag=0.25", False),
    ("outages=0.4:2 hold=5", False), ("altitude-spread=40", False), ("center-error=200", False),
    ("no-center=roster roster-missing=0.3 roster-error=50", False), ("no-center=own", False),
    ("obstacles=3:40-60 shadow", False), ("walls=2:200", True),
    ("links=rician:k=3,outage=0.1,shadow=3,asymmetry=3 hold=5", False),
    ("waves=2:30:100 outages=0.2:2 no-center=roster roster-error=50", False),
]  # fmt: skip


@pytest.mark.slow  # Numba compiles the twin for a minute
@pytest.mark.parametrize(("spec", "safety"), TWIN_WORLDS)
def test_the_twin_is_held_to_the_method_in_other_worlds(spec, safety):
    """The compiled twin and the method are at the same places in every state, lose the same UAVs, end alike.

    Lattices are left out: there teammates stand at exactly the horizon of 2 R, where the last bit decides.
    """
    pytest.importorskip("numba")
    from phygail.methods.reach_evolved.export import load_gate_weights
    from phygail.methods.reach_evolved.twin import fly_in_world, knows
    from phygail.weights import bundled

    vector, shape, belief, _ = load_gate_weights(bundled("reach-evolved").with_suffix(".safetensors"))
    flown = 0
    for number in range(1, 40):
        plain = soak_case(11, number, kinds=("random", "ring", "clusters", "hollow"))
        if flown == 2 or len(plain.alive) > 20 or plain.budget_steps > 500 or not is_split(plain):
            continue
        case = with_world(plain, parse_world(spec))
        assert knows(case, safety=safety)
        trace, present, success = fly_in_world(case, vector, shape, belief, safety=safety)
        episode = run_episode(case, "reach-evolved", safety=safety, record=True)
        assert (len(trace) - 1, success) == (episode.steps, episode.terminated), case.id
        for places, there, state in zip(trace, present, episode.states, strict=True):
            assert np.array_equal(np.flatnonzero(there), state.members)
            assert np.abs(places[there] - state.positions).max() < 1e-3
        flown += 1
    assert flown == 2


def test_a_soak_says_where_the_argument_holds(tmp_path, capsys):
    """Of 3 cases with centers 200 m off none meets the condition; the record counts them apart."""
    words = ["soak", "--method", "sidr", "--episodes", "3", "--world", "center-error=200", "--out", str(tmp_path)]
    assert main(words) in (0, 1)
    record = json.loads((tmp_path / "soak.json").read_text())
    assert record["argued"] < record["split"]
    assert "where the conditions of the argument hold" in capsys.readouterr().out
    assert all(failure["condition"] != "all hold" for failure in record["failures"])


@pytest.mark.parametrize(("spec", "judged"), [
    ("", True), ("outages=0.4:2 hold=5", True), ("walls=1:100 shadow", True), ("altitude-spread=40", True),
    ("altitude-spread=40 level", False), ("links=rician:k=10", False),
])  # fmt: skip
def test_the_checker_judges_connectivity_wherever_links_are_within_the_disc(spec, judged):
    """Outages and shadows take links away: a network that is one is one on the disc, too."""
    case = soak_case(1, 3, kinds=("random",))
    limits = _limits(with_world(case, parse_world(spec)) if spec else case, safety=False)
    assert limits.range_m == (case.physics.range_m if judged else 0.0)


def test_soak_in_another_world(tmp_path):
    words = ["soak", "--method", "sidr", "--episodes", "6", "--world", "trickle=0.2:20", "--out", str(tmp_path)]
    assert main(words) == 0


@pytest.mark.parametrize(("words", "said"), [
    (["scenarios", "--uavs", "30", "--damage", "0.5", "--out", "x.json", "--waves", "3:x:1"], "--waves"),
    (["compare", "--uavs", "30", "--failures", "1", "--hold", "3", "--methods", "sidr", "--out", "x"], "plain world"),
    (["recover", "--uavs", "30", "--hold", "3", "--world", "hold=3"], "cannot be combined"),
    (["soak", "--episodes", "0", "--out", "x"], "0 episodes"),
    (["soak", "--method", "nobody", "--out", "x"], "nobody"),
    (["soak", "--workers", "0", "--out", "x"], "0 workers"),
    (["recover", "--uavs", "30", "--obstacles", "8:80-40"], "smallest radius 80"),
    (["recover", "--uavs", "30", "--wind", "11"], "below the speed limit"),
    (["train", "reach-evolved", "--waves", "3:40:150", "--out", "x"], "--waves: training flies the plain world"),
    (["train", "cr-ma", "--world=hold=3"], "--world: training flies the plain world"),
    (["experts", "--trickle", "0.3:100", "--out", "x.h5"], "--trickle: training flies the plain world"),
])  # fmt: skip
def test_bad_flags_are_one_line(words, said, tmp_path, monkeypatch, capsys):
    """WORLDS 3.9 on the command line: one line, exit 2."""
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_file_with_a_world_refuses_another_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    draw = ["scenarios", "--uavs", "30", "--damage", "0.5", "--cases", "1", "--trickle", "0.2:20", "--out", "c.json"]
    assert main(draw) == 0
    (case,) = load_scenarios("c.json")
    assert case.world.events
    assert main(["recover", "--scenarios", "c.json", "--methods", "sidr", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["methods"][0]
    assert row["world"] == "trickle=0.2:20"
    assert row["split_steps"] <= row["steps"]
    assert main(["recover", "--scenarios", "c.json", "--waves", "1:5:10"]) == 2
    assert "brings its own world along" in capsys.readouterr().err


def test_world_text_is_the_same_world_as_its_flags():
    from phygail.cli.options import WorldFlags

    assert WorldFlags(waves="3:40:150", hold="10", shadow=False).spec() == "waves=3:40:150 hold=10"
    assert WorldFlags(world="hold=10 waves=3:40:150").spec() == "waves=3:40:150 hold=10"
    with pytest.raises(InputError, match="unknown option"):
        WorldFlags(world="gravity=2").spec()


def test_fading_prints_its_calibration(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = [
        "scenarios",
        "--uavs",
        "30",
        "--damage",
        "0.5",
        "--cases",
        "1",
        "--links",
        "rician:k=10",
        "--out",
        "c.json",
    ]
    assert main(words) == 0
    assert "a hello at 120 m is lost with probability 0.1" in capsys.readouterr().err


def test_a_comparison_without_any_bound_has_a_summary_and_no_ratio(tmp_path):
    """Strikes around drawn UAVs leave no bound: the report is written all the same."""
    from phygail.experiments.folder import RunFolder, resolved_config
    from phygail.experiments.rows import case_row, episode_row, make_case, rows_table
    from phygail.experiments.runner import _report, make_job
    from phygail.methods.controller import fly_case
    from phygail.swarm.recipe import parse_world, with_world

    case = make_case(with_world(soak_case(1, 3, kinds=("random",)), parse_world("waves=1:5:20")))
    episode, method = fly_case(case.scenario, "sidr")
    row = case_row(case, "sidr", safety=False, policy=None) | episode_row(episode, method)
    assert row["bound_steps"] is None
    assert row["world"] == "waves=1:5:20"
    job = make_job([case.scenario], "sidr", safety=False, timeout=None, policy=None, plugins=())
    config = resolved_config(job)
    _report(RunFolder(tmp_path, config), rows_table([row]), "phygail compare")
    assert (tmp_path / "summary.md").exists()
    assert not (tmp_path / "over_bound.png").exists()
