"""Every table under results/ and in the pages about them is that of the rows beside it."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from phygail import benchmark
from phygail.cli.recover import FAVORITES
from phygail.experiments import statistics
from phygail.experiments.catalog import EXPERIMENTS
from phygail.experiments.reproduce import REPORT
from phygail.experiments.rows import read_rows, rows_table
from phygail.experiments.summary import summary_markdown
from phygail.methods import METHODS
from phygail.methods.base import why_not

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
COMPARISONS = sorted(path.parent.name for path in RESULTS.glob("*/summary.md"))
REPORTS = sorted(path.parent.name for path in RESULTS.glob(f"*/{REPORT}"))


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, RESULTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


UPDATE = _load("update_readme")


@pytest.fixture(scope="module", autouse=True)
def once():
    """Rows and cases are read once, not for every table and number that is made of them."""
    rows, cases = functools.cache(read_rows), functools.cache(benchmark.load_cases)
    with pytest.MonkeyPatch.context() as patched:
        for module in (UPDATE, sys.modules["facts"], sys.modules["world_tables"], benchmark, statistics):
            for name, found in (("read_rows", rows), ("load_cases", cases)):
                if hasattr(module, name):
                    patched.setattr(module, name, found)
        yield


def test_there_are_results():
    assert COMPARISONS or REPORTS


@pytest.mark.parametrize("name", COMPARISONS)
def test_the_summary_of_a_comparison_is_that_of_its_rows(name):
    folder = RESULTS / name
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    made = summary_markdown(rows_table(read_rows(folder / "rows.csv")), record["config"], record["run"]["command"])
    assert made == (folder / "summary.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", REPORTS)
def test_the_tables_of_an_experiment_are_those_of_its_rows(name):
    experiment = EXPERIMENTS.get(UPDATE.experiment_of(name))
    assert UPDATE.whole_report(name) == (RESULTS / name / REPORT).read_text(encoding="utf-8")
    drawn = [(RESULTS / name / f"{figure}.png").exists() for figure in experiment.figures]
    assert all(drawn) or not any(drawn)  # figures are made at a release: make figures


@pytest.mark.parametrize("seed", range(3))
def test_the_budget_of_the_ablation_makes_a_full_model_that_is_worth_taking_apart(seed):
    """It reconnects every swarm of 20 in at most 1.45 times the bound, with every seed."""
    small = [row for row in read_rows(RESULTS / "ablation" / f"full-s{seed}" / "rows.csv") if row["uavs"] == 20]
    assert len(small) == 60
    assert all(row["converged"] for row in small)
    assert sum(row["steps"] for row in small) <= 1.45 * sum(row["bound_steps"] for row in small)


@pytest.mark.parametrize("name", [*COMPARISONS, *REPORTS])
def test_results_name_the_command_that_made_them(name):
    text = (RESULTS / name / (REPORT if name in REPORTS else "summary.md")).read_text(encoding="utf-8")
    assert "\n    phygail " in text


@pytest.fixture(scope="module")
def written() -> dict[Path, str]:
    """What results/update_readme.py would write now, by path."""
    return UPDATE.written()


def test_every_table_and_number_of_the_documents_is_that_of_the_rows(written):
    """AUDIT P6, P7: nothing stands in a document that the rows do not say. Remake: python results/update_readme.py."""
    for page, text in written.items():
        assert page.read_text(encoding="utf-8") == text, page


def test_every_experiment_has_its_page_and_no_page_is_left_over(written):
    pages = {path for path in written if path.parent.name == "experiments"}
    assert {path.stem for path in pages} == {*REPORTS, "index"}
    assert set((ROOT / "docs" / "experiments").glob("*.md")) == pages


def test_pages_are_as_short_as_they_promise():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 130
    assert len((ROOT / "docs" / "results.md").read_text(encoding="utf-8").splitlines()) <= 150


# What a page says about settings, sections, versions, trainings and other people's print, not about our rows.
GIVEN = {
    "README.md": "3.11 3.13 8.3 0.1 5% 60% 95%",
    "docs/benchmark.md": "0.05 0.2 0.5 1,000 5% 95%",
    "docs/cards/demd.md": "1,000",
    "docs/cards/gdr-ts.md": "2,000",
    "docs/cards/phygail-plus.md": "1.8",
    "docs/cards/phygail-taught.md": "1,000 1,980 990scenarios",
    "docs/cards/phygail.md": "1,782",
    "docs/cards/reach-evolved.md": "0.5 20% 30% 50%",
    "docs/choose.md": "0.5",
    "docs/concepts.md": "0.1 0.8 8.3",
    "docs/environment.md": "0.01 1.27 1.4 2.9 3.11 12,288",
    "docs/formats.md": "0.01 0.1 0.8 9.9",
    "docs/gallery.md": "0.5 90%",
    "docs/index.md": "0.7",
    "docs/limits.md": "0.1 30%",
    "docs/methods/bridge.md": "9.1 9.2",
    "docs/methods/cr-mgc.md": "0.1 2,000 9,500",
    "docs/methods/demd.md": "0.01 0.02 0.1%",
    "docs/methods/gdr-ts.md": "2,000",
    "docs/methods/hero.md": "0.9",
    "docs/methods/hpc-cr.md": "4,096",
    "docs/methods/index.md": "0.1",
    "docs/methods/ledir.md": "9.1",
    "docs/methods/phygail-plus.md": "0.2 1.8 3.3 4.5 8.6 8.8 95%",
    "docs/methods/phygail.md": "1.28 1.30 4.12 95%",
    "docs/methods/reach-evolved.md": "8.6",
    "docs/methods/reach.md": "8.6 95%",
    "docs/methods/sidr.md": "1.5",
    "docs/methods/vcr.md": "9.1",
    "docs/play.md": "0.15 1MB 1,000",
    "docs/radio.md": "10%",
    "docs/results.md": "0.05 0.1 0.5 0.95 1,000 2,000 5,000 10,000",
    "docs/start.md": "3.11 3.12 3.13 20cases",
    "docs/sure.md": "0.25 0.5 0.75 95%",
    "docs/training.md": "0.1 20% 30% 50% 216scenarios 36policies 3.3 4.7 4.12 8.6",
    "docs/worlds.md": "95% 0.25 0.3 0.5 0.75 0.9 0.9999 1.5 8.3 10% 40% 10,000 100,000 20cases 25flights",
}
# The specification, and pages about how decisions came about: their numbers are of development (docs/methods/index.md).
HISTORY = {"docs/METHODS.md", "docs/equations.md", "docs/lab-book.md", "docs/training-decisions.md"}
# The same of sections of the methods' pages; each of these pages names the damage of its table, or how it is checked.
DEVELOPMENT = r"^## (?:Constants|Deviations|How it was trained|Rules that were tried|Training).*?(?=^## |\Z)"
ON_METHOD_PAGES = {"0.01", "0.05", "0.95"}
MEASURED = (
    r"\d+\.\d+(?: ?%)?|\d+ ?%|\d{1,3}(?:,\d{3})+"
    r"|\b\d+ (?:cases|flights|scenarios|comparisons|settings|weights|episodes|policies|MB)\b"
)
NAMES = {page: page.relative_to(ROOT).as_posix() for page in UPDATE.pages()}
TOLD = [name for name in NAMES.values() if name not in HISTORY]


@pytest.mark.parametrize("page", TOLD)
def test_no_measured_number_stands_outside_a_table_or_a_mark(page):
    """A decimal, a percentage, a count in a sentence is worked out from rows, or it is listed here as given."""
    text, given = (ROOT / page).read_text(encoding="utf-8"), set(GIVEN.get(page, "").split())
    if page.startswith("docs/methods/"):
        text, given = re.sub(DEVELOPMENT, " ", text, flags=re.DOTALL | re.MULTILINE), given | ON_METHOD_PAGES
    made = r"```.*?```|<!-- [\w:+.-]+ -->.*?<!-- end -->|<!--\w+:[^>]*-->.*?<!--/-->"
    prose = re.sub(made, " ", text, flags=re.DOTALL)
    prose = re.sub(r"\$\$.*?\$\$", " ", prose, flags=re.DOTALL)
    prose = re.sub(r"`[^`]*`|\]\([^)]*\)|\$[^$]*\$|^    .*$", " ", prose, flags=re.MULTILINE)
    found = {number.replace(" ", "") for number in re.findall(MEASURED, prose)}
    assert found <= given, "make it a fact of results/facts.py"
    assert given - ON_METHOD_PAGES <= found, "it is not there any more: take it off the list"


# Sentences that compare speeds without an interval, and why that is right: by definition or proof; with what somebody
# else prints, whose cases nobody has; along one training, whose table stands below; about what a command will say.
COMPARED_OTHERWISE = (
    "no method, whatever it knows, can be faster",
    "no controller is faster",
    "about twice as fast as printed",
    "The rest of the thirteen minutes makes it faster",
    "says of each change whether it is faster or slower",
)
COMPARES = (
    r"\b(?:faster|slower|as fast as|no better|lose little|hardly change|next to nothing|level or ahead"
    r"|times (?:the steps|its steps|those|as many steps))\b|[Bb]ehind `"
)


@pytest.mark.parametrize("page", TOLD)
def test_every_comparison_of_speed_in_a_sentence_has_its_interval(page):
    """Paired, 95 %: `paired` and its kin write it (update_readme.INTERVALS)."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if page.startswith("docs/methods/"):
        text = re.sub(DEVELOPMENT, " ", text, flags=re.DOTALL | re.MULTILINE)
    prose = re.sub(r"```.*?```|<!-- [\w:+.-]+ -->.*?<!-- end -->", " ", text, flags=re.DOTALL)
    told = rf"<!--(?:{'|'.join((*UPDATE.INTERVALS, 'slower'))}):[^>]*-->"
    prose = re.sub(r"^    .*$|^#.*$", " ", re.sub(told, " PAIRED ", prose), flags=re.MULTILINE)
    sentences = re.split(r"(?<=[.!?])\s|\n\s*\n|\n\|", prose)
    bare = [" ".join(s.split()) for s in sentences if re.search(COMPARES, s) and "PAIRED" not in s]
    assert not [s for s in bare if not any(fine in s for fine in COMPARED_OTHERWISE)]


def test_links_between_documents_stay_within_the_site():
    """A page outside docs/ is no page of the site, and `make docs` takes a link to it for a mistake."""
    docs = ROOT / "docs"
    links = [
        (page, target)
        for page in docs.rglob("*.md")
        if "_build" not in page.parts
        for target in re.findall(r"\]\(([^)#:]+\.md)[^)]*\)", page.read_text(encoding="utf-8"))
    ]
    assert len(links) > 100
    astray = [(page.name, to) for page, to in links if docs not in (page.parent / to).resolve().parents]
    missing = [(page.name, to) for page, to in links if not (page.parent / to).exists()]
    assert not astray + missing


@pytest.mark.parametrize("page", UPDATE.pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_line_begins_with_a_mark(page):
    """Markdown would take such a line for HTML and end the paragraph."""
    assert not re.search(r"^\s*(?:- )?<!--[\w/]", page.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("name", ["reach-evolved", "reach", "sidr", "phygail-taught"])
def test_who_is_said_not_to_have_failed_has_not(name):
    assert UPDATE.FACTS["failures"](name) == "0"


def test_the_page_about_what_breaks_it_names_every_world_in_which_the_method_we_recommend_has_failed():
    text = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    rows = sys.modules["world_tables"].world_rows()
    lost = rows.filter((rows["method"] == "reach-evolved") & (rows["converged"] == 0))["world"].unique()
    soaks = [
        path for path in RESULTS.glob("soak/*/soak.json") if json.loads(path.read_text(encoding="utf-8"))["failures"]
    ]
    wanted = [f"<!--failed_in:reach-evolved:{world}-->" for world in lost]
    wanted += [f"<!--soaked:{path.parent.name}-->" for path in soaks]
    assert wanted  # else nothing is asked here
    assert not [mark for mark in wanted if mark not in text]


QUESTIONS = (
    "Which method should I fly?",
    "How sure are you?",
    "What breaks it?",
    "What does it send by radio?",
    "How do I compare mine?",
)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_reader_gets_from_the_readme_to_each_of_five_answers_in_one_click(question):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    target = re.search(rf"\[{re.escape(question)}\]\((docs/\w+\.md)\)", text)
    assert target is not None
    assert (ROOT / target[1]).read_text(encoding="utf-8").startswith(f"# {question.removesuffix('?')}"[:14])


CARD = ("**Data.**", "**Seeds.**", "**Budget.**", "**What is not learned.**", "**Known failures.**")


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS.get(name).learned and not why_not(name)])
def test_every_learned_policy_has_a_card_that_names_its_weights(name):
    card = (ROOT / "docs" / "cards" / f"{name}.md").read_text(encoding="utf-8")
    assert all(part in card for part in CARD)
    content = (ROOT / "src" / "phygail" / "weights" / f"{name}.safetensors").read_bytes()
    assert hashlib.sha256(content).hexdigest() in card


def test_recover_flies_the_fastest_decentralized_method_of_the_second_draw_unless_told_otherwise():
    """README and docs/choose.md say so."""
    lines = UPDATE.draws_table("").splitlines()[2:]
    named = [(re.findall(r"`([\w-]+)`", line), line) for line in lines]
    best = next(names[0] for names, line in named if names and "| global |" not in line)
    assert best in FAVORITES
    for page in ("README.md", "docs/choose.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert re.search(rf"{best}.{{0,300}}`phygail recover` flies", text, re.DOTALL)
