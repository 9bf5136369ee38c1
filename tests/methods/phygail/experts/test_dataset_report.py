"""The summary of an expert database, against a database small enough to count by hand."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from phygail.methods.phygail.experts.database import concatenate, pack
from phygail.methods.phygail.experts.dataset import (
    ExpertSet,
    by_ratio,
    draw_expert_steps,
    expert_markdown,
    expert_tables,
    facts,
    method_shares,
    steps_figure,
)
from phygail.methods.phygail.experts.recipe import Demonstration, Outcome, Recipe
from phygail.swarm.scenario import make_scenario

RECIPE = Recipe("paper", ("hero", "sidr"), ("demd",), ("cr-ma",), damage=(0.05, 0.5, 0.9), cases=3, seed=400_000)


def demo(ratio, case, winner, moves):
    """Scenario `case` of `ratio`, solved by `winner` in that many moves; the other fails with the budget of 256."""
    scenario = make_scenario(f"s{ratio}-{case}", np.array([[0.0, 0], [50, 0], [250, 0]]), [1], width_m=320.0)
    outcomes = tuple(Outcome(m == winner, moves if m == winner else 256, 0.5 * m) for m in range(2))
    return Demonstration(scenario, ratio, case, outcomes, winner, np.zeros((moves + 1, 2, 2)), np.zeros((moves, 2, 2)))


@pytest.fixture(scope="module")
def experts():
    demos = [demo(0.05, 0, 1, 10), demo(0.05, 1, 1, 20), demo(0.05, 2, 0, 60), demo(0.5, 0, 1, 40)]
    about = {
        "config": RECIPE.config(), "dropped": {"0.5": 2, "0.9": 3}, "command": "phygail experts --out x.h5",
        "package_version": "0", "seed": 400_000, "content_sha256": "f" * 64,
    }  # fmt: skip
    return ExpertSet(concatenate([pack(d) for d in demos]), about, np.arange(4))


def test_wins_are_counted_most_first(experts):
    sidr, hero = method_shares(experts)
    assert (sidr.name, sidr.wins, sidr.share, sidr.success) == ("sidr", 3, 0.75, 0.75)
    assert sidr.mean_steps == (10 + 20 + 256 + 40) / 4
    assert (hero.name, hero.wins, hero.mean_steps) == ("hero", 1, (256 + 256 + 60 + 256) / 4)


def test_expert_steps_are_summed_up_by_ratio(experts):
    low, half, high = by_ratio(experts)
    assert (low.ratio, low.scenarios, low.held_out, low.dropped) == (0.05, 3, 1, 0)
    assert (low.mean, low.median, low.most, low.favorite) == (30.0, 20.0, 60, "sidr")
    assert low.p90 == pytest.approx(52.0)
    assert (half.scenarios, half.dropped, half.mean) == (1, 2, 40.0)
    assert (high.scenarios, high.dropped, high.most, high.favorite) == (0, 3, 0, "")


def test_the_markdown_names_command_pool_absences_and_figures(experts):
    text = expert_markdown(experts)
    assert "    phygail experts --out x.h5\n" in text
    assert "Left out on request: demd. Missing because they cannot fly here: cr-ma." in text
    assert "4 scenarios of 20 UAVs, 2 held out, 5 dropped." in facts(experts)
    assert "| sidr | 3 | 75.0% | 75.0% | 81.5 | 0.500 | 0 |" in text
    assert "| 0.05 | 3 | 1 | 0 | 30.0 | 20.0 | 52.0 | 60 | sidr |" in text
    assert "| 0.9 | 0 | 0 | 3 | - | - | - | 0 |  |" in text
    assert [len(table.rows) for table in expert_tables(experts)] == [2, 3]
    assert all(max(map(len, table.plain(80).splitlines())) <= 80 for table in expert_tables(experts))


def test_the_histogram_counts_every_scenario_once(experts, tmp_path):
    axes = steps_figure(experts).axes[0]
    assert sum(patch.get_height() for patch in axes.patches) == 4
    draw_expert_steps(experts, tmp_path / "x.png")
    draw_expert_steps(experts, tmp_path / "y.png")
    assert (tmp_path / "x.png").read_bytes() == (tmp_path / "y.png").read_bytes()
    with Image.open(tmp_path / "x.png") as picture:
        assert picture.width > 1000
