"""Variants: trained alike, resumed, flown by file, reported from rows and logs."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import partial

import polars as pl
import pytest

from phygail.config import InputError
from phygail.experiments import paper_tables
from phygail.experiments.catalog import EXPERIMENTS
from phygail.experiments.experiment import Experiment, Leg, Scale, Variant
from phygail.experiments.figures import budget_means, learning_curves, learning_figure, neighbors_figure, sweep
from phygail.experiments.paper_tables import changes, variants, verdicts
from phygail.experiments.reproduce import REPORT, report_text, run_experiment, write_report
from phygail.experiments.rows import read_rows
from phygail.experiments.runner import Flying, fly_leg
from phygail.experiments.statistics import Evidence, load_evidence, validations
from phygail.experiments.trained import (
    TRANSFER,
    Budget,
    Together,
    answered,
    choose_checkpoints,
    draw_case,
    finished,
    train_variants,
    variant_config,
)
from phygail.methods import METHODS
from phygail.methods.phygail.experts.database import concatenate, pack, write_archive
from phygail.methods.phygail.experts.recipe import Recipe, demonstrate
from phygail.methods.phygail.graph import GRAPHS
from phygail.swarm.links import find_links
from phygail.swarm.tree import bound_steps
from phygail.weights import bundled

FASTER = pytest.mark.usefixtures("no_processes", "no_learning_curves", "exported_once")
pytestmark = [pytest.mark.xdist_group("export"), FASTER]  # torch loads its exporter for seconds: once
TINY = ("worlds=2", "horizon=5", "batch_graphs=10", "ppo_epochs=1", "width=8", "layers=1", "validation_cases=1")
TOY = Experiment(
    "toy", "Toy", "?", (Leg("policies", ("flown",), (20,), (0.5,), 1),), tables=("variants", "learning"),
    figures=("learning",),
    variants=(Variant("full", "All"), Variant("no-gail", "w/o GAIL", ("w_il=0",), {"rank": 4.6})),
)  # fmt: skip
FLOWN = """
from phygail.methods.base import register
from phygail.methods.phygail import PolicyMethod

@register
class Flown(PolicyMethod):
    name = "flown"
    summary = "flies a policy file"
"""


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    """A folder with an expert database and a method that flies policy files."""
    folder = tmp_path_factory.mktemp("trained")
    recipe = Recipe("toy", ("sidr",), damage=(0.5,), cases=3)
    demos = [demonstrate(recipe, number) for number in range(len(recipe))]
    write_archive(folder / "toy.h5", concatenate([pack(demo) for demo in demos]), recipe.config(), {})
    (folder / "flown.py").write_text(FLOWN)
    yield folder
    METHODS._entries.pop("flown", None)


@pytest.fixture(scope="module")
def budget(ground):
    return Budget(ground / "toy.h5", "smoke", 2, 1, TINY, ground / "runs")


@pytest.fixture(scope="module")
def how(ground):
    return Flying(workers=1, plugins=(ground / "flown.py",), command="phygail reproduce toy")


@pytest.fixture(scope="module")
def toy(ground, budget, how, no_processes, no_learning_curves, exported_once):
    out = ground / "toy"
    run_experiment(TOY, out, Scale(), how, budget)
    write_report(TOY, out)
    return out


def test_every_variant_is_a_setting_of_training_and_differs_from_the_full_model():
    for name in ("ablation", "sensitivity"):
        full, *others = EXPERIMENTS.get(name).variants
        base = variant_config(full, 0, Budget())
        configs = [variant_config(variant, 0, Budget()) for variant in others]
        assert all(config != base for config in configs)
        assert len({str(config) for config in configs}) == len(configs)
        assert all(config.graph in GRAPHS for config in configs)


def test_the_ablation_has_the_twelve_variants_of_the_paper_and_two_more():
    """METHODS 4.7: without the virtual center is reported twice; GAIL alone is the other side of no GAIL."""
    variants = EXPERIMENTS.get("ablation").variants
    assert len(variants) == 1 + 12 + 2
    assert sum(bool(variant.published) for variant in variants) == 12
    assert next(v for v in variants if v.name == "gcn").published["time_s@500"] == 64.90


def test_each_variant_flies_its_own_policy_and_the_report_is_made_without_the_runs(toy):
    rows = [row for name in ("full-s0", "no-gail-s0") for row in read_rows(toy / name / "rows.csv")]
    assert [row["variant"] for row in rows] == ["full-s0", "no-gail-s0"]
    text = (toy / REPORT).read_text(encoding="utf-8")
    assert report_text(TOY, toy) == text
    assert "Trained alike: 2 epochs of 2 x 5 steps" in text
    assert "| All (`full`) | 1 | 1 |" in text
    assert "| w/o GAIL (`no-gail`) | 1 | 1 |" in text
    assert (toy / "learning.png").stat().st_size > 5_000


def test_the_policy_at_the_end_of_the_budget_flies_not_the_best_one(ground, toy, budget, how, tmp_path):
    """After a warm start the best may be from before the rewards had a say: all variants would fly alike.

    Where there is no best one, the same policy flies.
    """
    runs = tmp_path / "runs"
    shutil.copytree(ground / "runs", runs, ignore=shutil.ignore_patterns("*.onnx", "best.*"))
    run_experiment(TOY, tmp_path / "toy", Scale(), how, replace(budget, runs=runs, variants=("full",)))
    again, first = (folder / "full-s0" / "latest" / "full-s0.onnx" for folder in (runs, ground / "runs"))
    assert again.read_bytes() == first.read_bytes()


def test_a_second_run_trains_and_flies_nothing(toy, budget, how):
    before = {path: path.read_bytes() for path in toy.glob("*/rows.csv")}
    told = []
    run_experiment(TOY, toy, Scale(), replace(how, tell=told.append), budget)
    assert told == []
    assert {path: path.read_bytes() for path in toy.glob("*/rows.csv")} == before


def test_another_budget_is_refused(toy, budget, how):
    with pytest.raises(InputError, match=r"another budget \(epochs 2 -> 3"):
        run_experiment(TOY, toy, Scale(), how, replace(budget, epochs=3))


def test_trainings_of_unlike_budgets_are_not_compared(toy, tmp_path):
    folder = tmp_path / "mixed"
    for name, epochs in (("full-s0", 2), ("no-gail-s0", 3)):
        (folder / name).mkdir(parents=True)
        for file in ("rows.csv", "run.json", "log.jsonl"):
            (folder / name / file).write_bytes((toy / name / file).read_bytes())
        about = json.loads((toy / name / "training.json").read_text())
        about["config"]["epochs"] = epochs
        (folder / name / "training.json").write_text(json.dumps(about))
    with pytest.raises(InputError, match="mixes trainings of different budgets"):
        variants(load_evidence(TOY, folder))


@pytest.mark.slow  # every process imports torch for seconds
@pytest.mark.parametrize("chosen", [("full",), ("full", "no-gail")])
def test_trainings_side_by_side_are_those_of_one_process(ground, toy, budget, how, tmp_path, chosen):
    """A process for each, the same weights; a folder that is finished is left alone."""
    side = replace(budget, runs=tmp_path / "side", settings=TINY, variants=chosen)
    names = [run.name for run in train_variants(TOY, tmp_path / "out", side, replace(how, workers=2))]
    assert names == [f"{name}-s0" for name in chosen]
    for name in names:
        one, other = (runs / name / "latest.safetensors" for runs in (ground / "runs", tmp_path / "side"))
        assert one.read_bytes() == other.read_bytes()
        assert finished(tmp_path / "side" / name)
    assert not finished(ground / "nothing")


@pytest.mark.slow
def test_trainings_on_ray_are_those_of_one_process(ground, toy, budget, how):
    """A Ray of our own, the same weights."""
    pytest.importorskip("ray", reason="the extra cluster")
    far = replace(budget, runs=ground / "ray", settings=TINY)
    names = [run.name for run in train_variants(TOY, ground / "ray-out", far, replace(how, workers=2, cluster=True))]
    for name in names:
        one, other = (ground / runs / name / "latest.safetensors" for runs in ("runs", "ray"))
        assert one.read_bytes() == other.read_bytes()


def verdict_of(toy, steps, table=verdicts):
    """What a table says of no-gail, given (steps of full, steps of no-gail) by seed on one case."""
    evidence = load_evidence(TOY, toy)
    template = evidence.rows.to_dicts()[0]
    rows = [
        {**template, "variant": f"{name}-s{seed}", "steps": taken}
        for seed, pair in enumerate(steps)
        for name, taken in zip(("full", "no-gail"), pair, strict=True)
    ]
    return next(x for x in table(replace(evidence, rows=type(evidence.rows)(rows))).splitlines() if "no-gail" in x)


def test_a_claim_is_confirmed_only_by_an_interval_over_seeds(toy):
    """Ratios 1.10, 1.12, 1.14: mean 1.12, half width 4.303 x 0.02 / sqrt(3) = 0.050."""
    assert "1.120 (1.070 to 1.170, 3 seeds); confirmed" in verdict_of(toy, [(100, 110), (100, 112), (100, 114)])
    assert "; refuted" in verdict_of(toy, [(100, 90), (100, 88), (100, 86)])
    assert "; undecided" in verdict_of(toy, [(100, 90), (100, 112), (100, 100)])
    assert "1.100; undecided: one seed" in verdict_of(toy, [(100, 110)])


def test_a_change_is_faster_or_slower_by_an_interval_over_seeds(toy, monkeypatch):
    folders = {f"{name}-s{seed}": toy / "full-s0" for name in ("full", "no-gail") for seed in range(3)}
    monkeypatch.setattr(paper_tables, "trainings_of", lambda folder: folders.items())
    monkeypatch.setattr(paper_tables, "log_entries", lambda folder: [{"cpu_minutes": 6.0}])
    line = verdict_of(toy, [(100, 90), (100, 88), (100, 86)], changes)
    assert line.split(" | ")[1:4] == ["6.0", "0.000", "88.0"]  # the toy flight does not reconnect
    assert "0.880 (0.830 to 0.930, 3 seeds); faster" in line
    assert "; slower" in verdict_of(toy, [(100, 110), (100, 112), (100, 114)], changes)


def test_every_change_of_transfer_is_a_setting_that_differs_from_the_unchanged():
    """At least twenty of them, and no two alike."""
    budget = Budget(profile=TRANSFER.profile)
    configs = [variant_config(variant, 0, budget) for variant in TRANSFER.variants]
    assert len(set(configs)) == len(configs) >= 21
    assert all(config.pool for config in configs)  # no demonstrations are needed


def test_a_training_whose_flights_are_all_there_is_not_repeated(toy, tmp_path, budget, how):
    """One flight each: without the run folders nothing is trained for it again, for two or another budget it is."""
    moved = replace(budget, runs=tmp_path / "nowhere")
    assert list(train_variants(TOY, toy, moved, how, flights=1)) == []
    config = variant_config(TOY.variants[0], 0, budget)
    assert answered(toy / "full-s0", config, 1)
    assert not answered(toy / "full-s0", config, 2)
    assert not answered(toy / "full-s0", replace(config, epochs=3), 1)


def test_differences_are_to_the_full_model(toy):
    evidence = load_evidence(TOY, toy)
    rows = evidence.rows.to_dicts()
    for row in rows:
        row["time_s"] = 2.0 if row["variant"] == "full-s0" else 5.0
    line = next(x for x in variants(replace(evidence, rows=type(evidence.rows)(rows))).splitlines() if "no-gail" in x)
    assert "| 5.00 | +3.00 | - |" in line
    assert line.endswith("| 4.600 |")


def test_the_curves_are_the_validations_of_the_log(toy):
    points = validations(toy / "full-s0")
    assert [point["epoch"] for point in points] == [2]
    lines = learning_figure(load_evidence(TOY, toy)).axes[0].lines
    assert [line.get_label() for line in lines] == ["full", "no-gail"]
    assert list(lines[0].get_ydata()) == [points[0]["success"]]


def test_a_sweep_holds_the_other_budget_at_the_papers():
    known = EXPERIMENTS.get("sensitivity").variants
    assert [k for _, k in sweep(known, "k_act")] == [1, 2, 4, 6, 8, 12]
    assert sweep(known, "k_dmg") == [("no-damaged", 0), ("k-dmg-1", 1), ("k-dmg-2", 2), ("full", 3), ("k-dmg-5", 5)]


def test_time_and_contacts_are_drawn_over_both_budgets(toy):
    evidence = load_evidence(TOY, toy)
    flown = [("full-s0", 20, 3.0), ("k-act-1-s0", 20, 9.0), ("k-act-1-s1", 20, 7.0), ("full-s0", 100, 5.0)]
    rows = [
        {**evidence.rows.row(0, named=True), "variant": variant, "uavs": uavs, "time_s": time}
        for variant, uavs, time in flown
    ]
    known = EXPERIMENTS.get("sensitivity")
    evidence = replace(evidence, experiment=known, rows=type(evidence.rows)(rows))
    means = {(row["name"], row["uavs"]): row["time_s"] for row in budget_means(evidence).to_dicts()}
    assert means == {("full", 20): 3.0, ("k-act-1", 20): 8.0, ("full", 100): 5.0}
    time_over_k_act = neighbors_figure(evidence).axes[0].lines
    assert [line.get_label() for line in time_over_k_act] == ["N = 20", "N = 100"]
    assert [list(line.get_xdata()) for line in time_over_k_act] == [[1, 8], [8]]
    assert [list(line.get_ydata()) for line in time_over_k_act] == [[8.0, 3.0], [5.0]]


def test_the_curve_of_a_variant_is_the_mean_of_its_seeds(tmp_path):
    for seed, success in enumerate((0.2, 0.6)):
        (tmp_path / f"full-s{seed}").mkdir()
        score = {"success": success, "over_bound": 2.0, "mean_steps": 9.0}
        entry = {"epoch": 5, "cpu_minutes": 1.0 + seed, "validation": score}
        (tmp_path / f"full-s{seed}" / "log.jsonl").write_text(
            json.dumps({"epoch": 1}) + "\n" + json.dumps(entry) + "\n"
        )
    curve = learning_curves(tmp_path)["full"]
    assert curve["success"].to_list() == pytest.approx([0.4])
    assert curve["cpu_minutes"].to_list() == [1.5]
    axes = learning_figure(Evidence(TOY, pl.DataFrame(), (), (), "", tmp_path)).axes[0]
    assert axes.get_xlabel() == "CPU minutes of one core"
    assert list(axes.lines[0].get_xdata()) == [1.5]


def test_without_minutes_in_a_log_the_curve_is_drawn_over_epochs(tmp_path):
    (tmp_path / "full-s0").mkdir()
    score = {"success": 0.5, "over_bound": 2.0, "mean_steps": 9.0}
    (tmp_path / "full-s0" / "log.jsonl").write_text(json.dumps({"epoch": 5, "validation": score}) + "\n")
    axes = learning_figure(Evidence(TOY, pl.DataFrame(), (), (), "", tmp_path)).axes[0]
    assert (axes.get_xlabel(), list(axes.lines[0].get_xdata())) == ("epoch", [5])


def test_without_a_database_or_a_method_one_line_says_so(tmp_path, budget, how):
    with pytest.raises(InputError, match="no expert database: give --experts"):
        list(train_variants(TOY, tmp_path / "out", Budget(), how))
    with pytest.raises(InputError, match="no variant 'nobody': it has full, no-gail"):
        list(train_variants(TOY, tmp_path / "out", replace(budget, variants=("nobody",)), how))
    lost = replace(TOY, legs=(replace(TOY.legs[0], methods=("nobody",)),))
    with pytest.raises(InputError, match="no method nobody in this version"):
        run_experiment(lost, tmp_path / "out", Scale(), how, budget)


def test_the_case_study_is_three_subnets_of_ten_alive_some_way_apart():
    case = draw_case()
    assert (case.uavs, len(case.damaged)) == (20, 10)
    assert find_links(case.spots, 120.0).count == 3
    assert bound_steps(case.spots, case.physics) >= 15
    assert draw_case().id == case.id


def test_checkpoints_fly_one_case_each(ground, budget, how, toy):
    study = replace(TOY, tables=("case-study",), figures=(), variants=TOY.variants[:1], checkpoints=2)
    out = ground / "case"
    run_experiment(study, out, Scale(), how, replace(budget, run=ground / "runs" / "full-s0"))
    write_report(study, out)
    assert [path.parent.name for path in sorted(out.glob("*/rows.csv"))] == ["epoch-00001", "epoch-00002"]
    text = (out / REPORT).read_text(encoding="utf-8")
    assert "20 UAVs, 10 damaged, 3 subnets" in text
    assert "| 1 | no | 256 |" in text
    assert (out / "trajectories.png").exists()


def test_checkpoints_are_spread_from_the_first_to_the_last(tmp_path):
    (tmp_path / "policies").mkdir()
    for epoch in range(5, 45, 5):
        (tmp_path / "policies" / f"epoch-{epoch:05d}.safetensors").touch()
    chosen = [int(path.stem[-5:]) for path in choose_checkpoints(tmp_path, 3)]
    assert chosen == [5, 25, 40]
    with pytest.raises(InputError, match="kept no policies"):
        choose_checkpoints(tmp_path / "policies", 3)


def test_cases_flown_together_take_the_steps_of_single_flights(tmp_path, how):
    """By the bundled policy, rows and all; those that were not measured are empty."""
    leg = Leg("policies", ("phygail-plus",), (20, 50), (0.5,), 2)
    weights = bundled("phygail-plus")
    fly_leg(leg, tmp_path / "together", replace(how, engine=partial(Together, weights)), weights.with_suffix(".onnx"))
    fly_leg(leg, tmp_path / "single", replace(how, engine=None), weights.with_suffix(".onnx"))
    together, single = (read_rows(tmp_path / name / "rows.csv") for name in ("together", "single"))
    assert [row["steps"] for row in together] == [row["steps"] for row in single]
    assert all(row["converged"] == 1 and row["distance_m_per_uav"] is None for row in together)


def test_other_methods_do_not_fly_together(tmp_path, how):
    """Their rows would hold flights of the policy."""
    leg, weights = Leg("policies", ("phygail-plus", "sidr"), (20,), (0.5,), 1), bundled("phygail-plus")
    with pytest.raises(InputError, match="only phygail-plus flies these policies, not sidr"):
        fly_leg(leg, tmp_path / "odd", replace(how, engine=partial(Together, weights)), weights.with_suffix(".onnx"))
    assert not (tmp_path / "odd" / "rows.csv").exists()
