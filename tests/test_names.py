"""Names of methods say what they are; those of version 0.1 are refused or led to the new ones."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

from phygail.config import InputError, Registry
from phygail.experiments.rows import read_rows
from phygail.methods import METHODS, make_method
from phygail.methods.base import OLD_NAMES, SubnetMethod, choose_methods, register
from phygail.methods.controller import fly_case
from phygail.rng import generator
from phygail.swarm.scenario import draw_scenario
from phygail.weights import bundled

ROOT = Path(__file__).parent.parent
OLD = ROOT / "tests" / "data" / "v0.1.0"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("rename_methods", ROOT / "results" / "rename_methods.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(OLD, tmp_path / "old")
    return tmp_path / "old"


def test_phygail_is_what_the_paper_s_recipe_learned_from_scratch():
    """Not the evolved rule, which had the name in version 0.1: nobody cloned or taught it, and it flies alone."""
    method = make_method("phygail")
    training = json.loads(method.policy.card["training"])
    assert (training["training"]["clone_passes"], training["training"]["teach_rounds"]) == (0, 0)
    assert "first" not in training
    assert training["profile"] == "compact"
    with pytest.raises(InputError, match="reach-cloned"):
        choose_methods("sidr,phygail-clone")


def test_a_policy_of_version_0_1_of_that_name_is_not_flown_by_it(tmp_path):
    """Its kind is that of the evolved rule."""
    with pytest.raises(InputError, match="reach-evolved"):
        make_method("phygail", policy=bundled("reach-evolved").with_suffix(".onnx"))


def test_nobody_may_take_the_word():
    class Mine(SubnetMethod):
        """Would be mistaken for the paper's."""

        name = "phygail"

        def act(self, view):
            raise NotImplementedError

    with pytest.raises(InputError, match="twice"):
        register(Mine)


def test_phygail_paper_is_another_name_of_phygail_taught():
    assert METHODS.get("phygail-paper") is METHODS.get("phygail-taught")
    assert choose_methods("phygail-paper,sidr") == ("phygail-taught", "sidr")
    with pytest.raises(InputError, match="twice"):
        choose_methods("phygail-paper,phygail-taught")
    assert "phygail-paper" not in list(METHODS)


def test_a_registry_with_aliases_and_retired_names():
    colors = Registry("color", aliases={"grey": "gray"}, retired={"puce": "nobody knew it"})
    colors.add("gray", 1)
    assert (colors.get("grey"), colors.canonical("grey"), "grey" in colors, list(colors)) == (1, "gray", True, ["gray"])
    for name, line in (("puce", "nobody knew it"), ("grey", "another name of gray")):
        with pytest.raises(InputError, match=line):
            colors.add(name, 2)


@pytest.mark.parametrize(("old", "new"), OLD_NAMES.items())
def test_a_renamed_method_draws_from_its_old_stream(old, new):
    """Flights with randomness are those of version 0.1: the key of the generator has not changed."""
    scenario = draw_scenario(20, 0.5, generator(3, "stream"), seed=3)
    _, method = fly_case(scenario, new)
    assert method.rng.random() == generator(3, "method", old, scenario.id).random()


def test_rows_of_version_0_1_are_refused_until_they_are_renamed(folder, script):
    with pytest.raises(InputError, match=r"rows of phygail of version 0\.1\.0, which is reach-evolved now"):
        read_rows(folder / "compare" / "rows.csv")
    before = (folder / "compare" / "rows.csv").read_text().splitlines()
    assert script.main([str(folder / "compare")]) == 0
    rows = read_rows(folder / "compare" / "rows.csv")
    assert [row["method"] for row in rows[:5]] == ["phygail-taught", "reach", "reach-cloned", "reach-evolved", "sidr"]
    after = (folder / "compare" / "rows.csv").read_text()
    for line in before[1:]:
        scenario, method, rest = line.split(",", 2)
        wanted = f"{scenario},{OLD_NAMES.get(method, method)},{rest.replace('0.1.0', '0.2.0')}"
        assert f"\n{wanted}\n" in after
    record = json.loads((folder / "compare" / "run.json").read_text())
    assert record["config"]["methods"] == ["phygail-taught", "reach", "reach-cloned", "reach-evolved", "sidr"]
    assert (record["version"], record["flown_by"]) == ("0.2.0", "0.1.0")
    assert "--methods sidr,reach,reach-evolved,reach-cloned,phygail-taught " in record["run"]["command"]


def test_nothing_is_renamed_twice(folder, script, capsys):
    assert script.main([str(folder / "compare")]) == 0
    content = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert script.main([str(folder / "reproduce"), str(folder / "compare")]) == 2
    assert "compare is of version 0.2.0" in capsys.readouterr().err
    assert content == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_runs_of_version_0_1_are_refused_until_they_are_renamed(folder, script):
    pytest.importorskip("torch")
    pytest.importorskip("numba")
    pytest.importorskip("h5py")
    from phygail.methods.phygail.train import resume_run
    from phygail.methods.reach_evolved.train import resume_evolution

    with pytest.raises(InputError, match=r"run of phygail of version 0\.1\.0, which is reach-evolved now"):
        resume_evolution(folder / "train-evolve")
    with pytest.raises(InputError, match=r"run of phygail of version 0\.1\.0, which is reach-evolved now"):
        resume_run(folder / "train-evolve", folder / "experts.h5")
    with pytest.raises(InputError, match=r"run of phygail-paper of version 0\.1\.0, which is phygail now"):
        resume_run(folder / "train-paper", folder / "experts.h5")
    assert script.main([str(folder / "train-evolve"), str(folder / "train-paper")]) == 0
    assert resume_evolution(folder / "train-evolve").search.generation == 2
    assert resume_run(folder / "train-paper", folder / "experts.h5").learner.epoch == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("phygail train phygail --out runs/a", "phygail train reach-evolved --out runs/a"),
        ("phygail train phygail-paper --resume runs/paper", "phygail train phygail --resume runs/paper"),
        ("phygail compare --methods sidr,phygail --out x", "phygail compare --methods sidr,reach-evolved --out x"),
        ("recover --methods phygail-paper,phygail-clone", "recover --methods phygail-taught,reach-cloned"),
        ("compare --policy a/phygail-second-seed.onnx", "compare --policy a/reach-evolved-second-seed.onnx"),
        ("phygail methods", "phygail methods"),
    ],
)  # fmt: skip
def test_commands_are_those_one_types_now(script, old, new):
    assert script.renamed_command(old) == new
