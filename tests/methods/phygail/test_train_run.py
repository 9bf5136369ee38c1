import json
import signal
import subprocess
import sys
import time

import pytest
import torch

from phygail.config import InputError
from phygail.learning.log import read_log
from phygail.learning.run import BEST, LATEST, STATE, override
from phygail.methods.phygail.config import PROFILES
from phygail.methods.phygail.learner import make_learner
from phygail.methods.phygail.train import resume_run, start_run, train
from phygail.weights import parse_safetensors

pytestmark = pytest.mark.usefixtures("no_learning_curves")
TINY = override(
    PROFILES.get("smoke"),
    ["worlds=2", "horizon=5", "batch_graphs=10", "ppo_epochs=1", "width=8", "layers=1", "validation_cases=1"],
)


def contents(folder):
    """All tensors of the state: networks and optimizers."""
    return {name: array.tobytes() for name, array in parse_safetensors((folder / STATE).read_bytes()).items()}


@pytest.fixture(scope="module")
def undisturbed(database, tmp_path_factory, no_learning_curves):
    folder = tmp_path_factory.mktemp("runs") / "undisturbed"
    train(start_run(folder, database, TINY), tensorboard=False)
    return folder


def test_a_run_that_stops_and_resumes_ends_bit_for_bit_like_an_undisturbed_one(undisturbed, database, tmp_path):
    train(start_run(tmp_path, database, TINY), until=2, tensorboard=False)
    assert contents(tmp_path) != contents(undisturbed)
    again = resume_run(tmp_path)
    assert again.learner.epoch == 2
    train(again, tensorboard=False)
    assert contents(tmp_path) == contents(undisturbed)
    for name in (BEST, LATEST):
        assert (tmp_path / name).read_bytes() == (undisturbed / name).read_bytes()
    plain = [{key: entry.get(key) for key in ("epoch", "flown", "ppo", "validation")} for entry in read_log(tmp_path)]
    assert plain == [{key: entry.get(key) for key in plain[0]} for entry in read_log(undisturbed)]


def test_a_resumed_log_forgets_epochs_that_were_never_saved(undisturbed, database, tmp_path):
    """A kill between the log and the state leaves a line too much, or half of one."""
    train(start_run(tmp_path, database, TINY), until=1, tensorboard=False)
    with (tmp_path / "log.jsonl").open("a") as log:
        log.write('{"epoch": 2, "flown": {}}\n{"epo')
    train(resume_run(tmp_path), until=2, tensorboard=False)
    assert [entry["epoch"] for entry in read_log(tmp_path)] == [1, 2]
    assert read_log(tmp_path)[1]["ppo"] == read_log(undisturbed)[1]["ppo"]


def test_a_finished_run_resumes_to_itself(undisturbed):
    before = contents(undisturbed)
    assert train(resume_run(undisturbed), tensorboard=False) is not None
    assert contents(undisturbed) == before


def test_every_number_of_the_run_stands_beside_its_policies(undisturbed):
    about = json.loads((undisturbed / BEST).with_suffix(".json").read_text())
    assert about["training"]["width"] == 8
    assert about["training"]["clone_passes"] == 0
    assert about["experts"]["content_sha256"]
    assert set(about["validation"]) == {"success", "over_bound", "mean_steps"}


def test_the_best_policy_is_a_loadable_actor(undisturbed):
    from phygail.learning.networks import load_state
    from phygail.methods.phygail import KIND, VERSION

    actor = make_learner(TINY).actor
    load_state(actor, undisturbed / BEST, KIND, VERSION)


def test_stages_and_rates_are_in_the_log(undisturbed):
    entry = read_log(undisturbed)[-1]
    assert {"collect", "discriminator", "rewards", "ppo", "validation", "save"} <= set(entry["seconds"])
    assert sum(entry["share"].values()) == pytest.approx(1.0, abs=0.01)
    assert entry["rate"]["collected_world_steps_per_s"] > 0


def test_a_folder_with_a_run_is_not_overwritten(undisturbed, database):
    with pytest.raises(InputError, match="--resume"):
        start_run(undisturbed, database, TINY)


def test_another_database_is_refused(undisturbed, make_database, tmp_path):
    other = make_database(tmp_path / "other.h5", 0.4, 2)
    with pytest.raises(InputError, match="another expert database"):
        resume_run(undisturbed, other)


def test_a_missing_database_names_the_command_that_builds_it(tmp_path):
    with pytest.raises(InputError, match="phygail experts --out"):
        start_run(tmp_path / "run", tmp_path / "none.h5", TINY)
    assert not (tmp_path / "run").exists()


def test_a_folder_without_a_run_cannot_be_resumed(tmp_path):
    with pytest.raises(InputError, match="holds no run"):
        resume_run(tmp_path)


def test_a_damaged_state_is_refused(database, tmp_path):
    start_run(tmp_path, database, TINY)
    (tmp_path / STATE).write_bytes((tmp_path / STATE).read_bytes()[:1000])
    with pytest.raises(InputError, match="cannot resume"):
        resume_run(tmp_path)


def test_the_warm_start_moves_the_mean_and_is_told(database, tmp_path):
    """Cloning lowers its error from pass to pass and leaves critic, discriminator and optimizers untouched."""
    config = override(TINY, ["clone_passes=4", "clone_rate=0.003", "clone_graphs=8"])
    run, fresh = start_run(tmp_path, database, config), make_learner(config)
    errors = json.loads((tmp_path / "clone.json").read_text())["mean_squared_error"]
    assert len(errors) == 4
    assert errors[-1] < errors[0]
    assert not torch.equal(run.learner.actor.mean[-1].weight, fresh.actor.mean[-1].weight)
    assert torch.equal(run.learner.critic.head[0].weight, fresh.critic.head[0].weight)
    assert torch.equal(run.learner.actor.log_std[-1].bias, fresh.actor.log_std[-1].bias)
    resumed = resume_run(tmp_path).learner
    assert torch.equal(run.learner.actor.mean[-1].weight, resumed.actor.mean[-1].weight)


def test_a_run_can_begin_with_the_networks_of_another(undisturbed, database, tmp_path):
    """Networks are inherited; optimizers, epoch and exploration noise are new; what made them is told."""
    config = override(TINY, ["map_scale=5", "initial_log_std=-1"])
    run = start_run(tmp_path / "second", database, config, first=undisturbed)
    before, fresh = resume_run(undisturbed).learner, make_learner(config)
    for name in ("critic", "discriminator"):
        inherited, theirs = run.learner.networks[name].state_dict(), before.networks[name].state_dict()
        assert all(torch.equal(inherited[key], theirs[key]) for key in theirs)
    assert torch.equal(run.learner.actor.mean[-1].weight, before.actor.mean[-1].weight)
    assert torch.equal(run.learner.actor.log_std[-1].bias, fresh.actor.log_std[-1].bias)
    assert run.learner.epoch == 0
    assert not run.learner.optimizers["actor"].state_dict()["state"]
    assert run.facts["first"]["epoch"] == before.epoch
    again = resume_run(tmp_path / "second")
    assert torch.equal(again.learner.actor.mean[-1].weight, before.actor.mean[-1].weight)


def test_a_run_killed_during_its_warm_start_is_no_run_yet(undisturbed, database, tmp_path, monkeypatch):
    """It must not resume with other networks than it says; started again, it is what it would have been."""
    config = override(TINY, ["teach_rounds=1"])

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("phygail.methods.phygail.train.teach", killed)
        with pytest.raises(KeyboardInterrupt):
            start_run(tmp_path / "killed", database, config, first=undisturbed)
    with pytest.raises(InputError, match="holds no run"):
        resume_run(tmp_path / "killed")
    start_run(tmp_path / "killed", database, config, first=undisturbed)
    start_run(tmp_path / "whole", database, config, first=undisturbed)
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_a_run_begins_only_with_networks_that_fit(undisturbed, database, tmp_path):
    with pytest.raises(InputError, match="another shape"):
        start_run(tmp_path, database, override(TINY, ["width=16"]), first=undisturbed)
    with pytest.raises(InputError, match="needs no warm start"):
        start_run(tmp_path, database, override(TINY, ["clone_passes=1"]), first=undisturbed)
    assert not list(tmp_path.iterdir())


CHILD = """
import sys
from pathlib import Path
from phygail.methods.phygail.train import resume_run
from phygail.methods.phygail.train import train
train(resume_run(Path(sys.argv[1])), tensorboard=False)
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_run_killed_again_and_again_ends_like_an_undisturbed_one(undisturbed, database, tmp_path):
    """kill -9 at moments spread over an epoch, resumed in a fresh process each time."""
    start_run(tmp_path, database, TINY)
    for delay in (0.05, 0.3, 0.7):
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path)], stderr=subprocess.PIPE)
        assert child.stderr is not None
        child.stderr.readline()  # the first epoch is told
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        child.wait()
    subprocess.run([sys.executable, "-c", CHILD, str(tmp_path)], check=True, stderr=subprocess.DEVNULL)
    assert contents(tmp_path) == contents(undisturbed)
