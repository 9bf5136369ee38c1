from dataclasses import asdict

import pytest

from phygail.config import InputError
from phygail.learning.run import override
from phygail.methods.phygail.config import PROFILES, TrainConfig, differences, from_json
from phygail.methods.phygail.learner import make_learner


def test_the_paper_profile_has_the_constants_of_the_paper():
    """METHODS 4.10."""
    config = PROFILES.get("paper")
    assert (config.worlds, config.epochs, config.horizon, config.batch_graphs) == (32, 1000, 1000, 4096)
    assert (config.ppo_epochs, config.ratio_clip, config.gamma, config.gae_lambda) == (5, 0.2, 0.99, 0.95)
    assert (config.entropy_first, config.entropy_last, config.entropy_share) == (0.05, 0.005, 0.45)
    assert (config.rate, config.weight_decay, config.gradient_norm, config.w_il) == (1e-4, 5e-5, 1.0, 0.1)
    assert (config.absorbing, config.clone_passes, config.gap_weight) == (False, 0, 0.0)
    assert (config.hold, config.worlds_go_on, config.compact, config.command) == (1, False, False, "tanh")
    assert (config.critic_clock, config.critic_gap, config.world_weight, config.judged_share) == (
        False,
        False,
        1.0,
        1.0,
    )
    assert (config.rate_last, config.map_scale, config.observation) == (1.0, 1.0, "paper")


@pytest.mark.parametrize("name", PROFILES.names())
def test_a_profile_survives_json(name):
    assert from_json(asdict(PROFILES.get(name))) == PROFILES.get(name)


def test_settings_take_the_type_of_their_field():
    changed = override(TrainConfig(), ["gamma=0.98", "epochs=7", "absorbing=true", "graph=no-center"])
    assert (changed.gamma, changed.epochs, changed.absorbing, changed.graph) == (0.98, 7, True, "no-center")
    assert differences(TrainConfig(), changed) == (
        "epochs 1000 -> 7, graph paper -> no-center, absorbing False -> True, gamma 0.99 -> 0.98"
    )


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("gama=0.9", "did you mean 'gamma'"),
        ("gamma", "NAME=VALUE"),
        ("epochs=many", "a whole number"),
        ("epochs=0", "choose from 1"),
        ("gamma=nan", "choose from"),
        ("absorbing=maybe", "true or false"),
        ("layer=mlp", "phygnn"),
        ("graph=everything", "no-knn"),
    ],
)
def test_a_bad_setting_is_one_clear_line(setting, message):
    with pytest.raises(InputError, match=message):
        override(TrainConfig(), [setting])


def test_a_saved_config_with_unknown_fields_is_refused():
    with pytest.raises(InputError, match="momentum"):
        from_json({**asdict(TrainConfig()), "momentum": 0.9})


def test_a_saved_config_of_an_older_version_has_the_defaults_of_newer_fields():
    saved = {name: value for name, value in asdict(TrainConfig(gamma=0.98)).items() if name != "map_scale"}
    assert from_json(saved) == TrainConfig(gamma=0.98)


def test_the_critic_may_have_fewer_rounds_than_the_policy():
    config = override(PROFILES.get("smoke"), ["layers=3", "critic_layers=1"])
    learner = make_learner(config)
    assert (len(learner.actor.encoder.layers), len(learner.critic.encoder.layers)) == (3, 1)
    assert len(make_learner(override(config, ["critic_layers=0"])).critic.encoder.layers) == 3
