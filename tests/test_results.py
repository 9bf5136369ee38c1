"""Every table under results/ and in the pages about them is that of the rows beside it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from phygail.evaluation.catalog import EXPERIMENTS
from phygail.evaluation.report import REPORT, report_text
from phygail.evaluation.rows import frame, read_rows
from phygail.evaluation.tables import summary_markdown

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
COMPARISONS = sorted(path.parent.name for path in RESULTS.glob("*/summary.md"))
REPORTS = sorted(path.parent.name for path in RESULTS.glob(f"*/{REPORT}"))


def test_there_are_results():
    assert COMPARISONS or REPORTS


@pytest.mark.parametrize("name", COMPARISONS)
def test_the_summary_of_a_comparison_is_that_of_its_rows(name):
    folder = RESULTS / name
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    made = summary_markdown(frame(read_rows(folder / "rows.csv")), record["config"], record["run"]["command"])
    assert made == (folder / "summary.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", REPORTS)
def test_the_tables_of_an_experiment_are_those_of_its_rows(name):
    experiment = EXPERIMENTS.get(name)
    assert report_text(experiment, RESULTS / name) == (RESULTS / name / REPORT).read_text(encoding="utf-8")
    for figure in experiment.figures:
        assert (RESULTS / name / f"{figure}.png").exists()


def test_the_budget_of_the_ablation_makes_a_full_model_that_is_worth_taking_apart():
    """It reconnects 95 % of swarms of 20 and is within 25 % of `phygail-paper` at N = 100, on the same cases."""
    full = read_rows(RESULTS / "ablation" / "full-s0" / "rows.csv")
    small = [row["converged"] for row in full if row["uavs"] == 20]
    assert small
    assert sum(small) >= 0.95 * len(small)
    flown = read_rows(RESULTS / "propositions" / "flights" / "rows.csv")
    paper = {row["scenario"]: row["steps"] for row in flown if row["method"] == "phygail-paper" and row["uavs"] == 100}
    mine = {row["scenario"]: row["steps"] for row in full if row["scenario"] in paper}
    assert len(mine) == len(paper) == 30
    assert sum(mine.values()) <= 1.25 * sum(paper.values())


@pytest.mark.parametrize("name", [*COMPARISONS, *REPORTS])
def test_results_name_the_command_that_made_them(name):
    text = (RESULTS / name / (REPORT if name in REPORTS else "summary.md")).read_text(encoding="utf-8")
    assert "\n    phygail " in text


@pytest.mark.parametrize("page", ["README.md", "docs/results.md"])
def test_the_tables_of_a_page_are_those_of_the_rows(page):
    spec = importlib.util.spec_from_file_location("update_pages", RESULTS / "update_readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = (ROOT / page).read_text(encoding="utf-8")
    assert "<!-- table:" in text
    assert module.refreshed(text) == text
