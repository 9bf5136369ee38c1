"""Write the tables and numbers of the documents from the rows under results/: `python results/update_readme.py`.

With `--figures` every figure is drawn anew, too (`make figures`); `--figures=pdf` or `svg` beside the PNG files.

A table stands between `<!-- KIND:NAME -->` and `<!-- end -->`; KINDS below says what there is. A number in a sentence
stands between `<!--FACT:ARGUMENTS-->` and `<!--/-->` (results/facts.py), never at the beginning of a line. All of
docs/experiments/ is written whole: a page for every experiment. A test makes everything again and compares.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl

sys.path.insert(0, str(Path(__file__).parent))
from facts import FACTS, RESULTS, draw, evidence, experiment_of, fact, rank, sensed_ratio
from world_tables import contacts_table, costs_table, methods_table, redundancy_table, soaks_table

from phygail.benchmark import board, read_entry
from phygail.experiments.catalog import EXPERIMENTS, LARGE
from phygail.experiments.figures import draw_curves
from phygail.experiments.propositions import RADIO, radio_tables, read_measures
from phygail.experiments.reproduce import FIGURES, REPORT, flights_folder, report_text
from phygail.experiments.rows import read_rows, rows_table
from phygail.experiments.statistics import (
    Evidence,
    compare_paired,
    load_evidence,
    log_entries,
    sensed_column,
    sensed_means,
    split_cases,
    summarize,
    validations,
)
from phygail.files import read_json, write_text
from phygail.methods import METHODS
from phygail.render.style import drawer
from phygail.render.tables import cell_text, interval_text, markdown_table

ROOT = RESULTS.parent
DOCS = ROOT / "docs"
EXPERIMENT_PAGES = DOCS / "experiments"
LEAST_CASES = 10
BLOCK = re.compile(r"(<!-- (?P<kind>[\w-]+)(?::(?P<name>[\w+.-]+))? -->\n)(?P<text>.*?)(<!-- end -->)", re.DOTALL)
NUMBER = re.compile(r"(<!--(?P<fact>\w+):(?P<arguments>[^>]*?)-->)(.*?)(<!--/-->)", re.DOTALL)
CLAIMS = (("reach-evolved", "reach"), ("reach-evolved", "sidr"), ("reach", "sidr"), ("reach-evolved", "convex"),
          ("phygail-plus", "reach-evolved"), ("phygail-plus", "reach"), ("phygail-plus", "sidr"),
          ("reach-evolved", "phygail-taught"), ("phygail-taught", "sidr"))  # fmt: skip
SIZES = ("100", "200", "500", "all")
LEARNING_EPOCHS = (10, 20, 50, 100, 150, 300)
PLUS_UPDATES = (10, 20, 40, 80, 120, 170, 220)  # the beliefs change after 120


def pages() -> list[Path]:
    """Every page with something to write: the README and all of docs/ that is not written whole."""
    found = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [page for page in found if EXPERIMENT_PAGES not in page.parents and "_build" not in page.parts]


def refreshed(text: str) -> str:
    """A page with every table and number made anew."""

    def block(match: re.Match[str]) -> str:
        made = KINDS.get(match["kind"])
        return match[0] if made is None else f"{match[1]}{made(match['name'] or '')}{match[5]}"

    def number(match: re.Match[str]) -> str:
        return f"{match[1]}{FACTS[match['fact']](*match['arguments'].split(':'))}{match[5]}"

    return NUMBER.sub(number, BLOCK.sub(block, text))


# --- tables ----------------------------------------------------------------------------------------------------------


def comparison_table(name: str) -> str:
    """Folders A+B of `phygail compare` with the same cases: steps per size, time over bound, meters, contacts."""
    rows = rows_table([row for part in name.split("+") for row in read_rows(RESULTS / part / "rows.csv")])
    overall, by_size = summarize(rows), summarize(rows, "uavs")
    sizes = sorted(by_size["uavs"].unique())
    header = ["method", "scope", "reconnected", *(f"N={n}" for n in sizes), "x bound", "meters", "contacts per UAV"]
    lines = []
    for row in overall.iter_rows(named=True):
        mine = by_size.filter(pl.col("method") == row["method"])
        steps = dict(zip(mine["uavs"], mine["steps"], strict=True))
        lines.append([
            f"`{row['method']}`", str(METHODS.get(row["method"]).scope), cell_text(row["convergence"], ".1%"),
            *(cell_text(steps.get(n), ".0f") for n in sizes), cell_text(row["over_bound"], ".2f"),
            cell_text(row["distance_m_per_uav"], ".0f"), cell_text(row["contact_events_per_uav"], ".2f"),
        ])  # fmt: skip
    least = _bounds(rows)
    lines.append(["*lower bound*", "", "", *(cell_text(least[n], ".0f") for n in sizes), "1.00", "", ""])
    return markdown_table(header, lines)


def _bounds(rows: pl.DataFrame) -> dict[int, float]:
    bounds = split_cases(rows).unique("scenario").group_by("uavs").agg(pl.col("bound_steps").mean())
    return dict(zip(bounds["uavs"], bounds["bound_steps"], strict=True))


def draws_table(_: str) -> str:
    """The headline: the second draw, and time over bound of the first beside it."""
    first, second = draw("1"), draw("2")
    earlier = {row["method"]: row for row in summarize(first).iter_rows(named=True)}
    by_size = summarize(second, "uavs")
    sizes = sorted(second["uavs"].unique())
    header = ["method", "scope", "cases", "reconnected", *(f"N={n}" for n in sizes), "x bound", "first draw", "meters"]
    lines = []
    for row in summarize(second).iter_rows(named=True):
        name = row["method"]
        mine = by_size.filter(pl.col("method") == name)
        steps = dict(zip(mine["uavs"], mine["steps"], strict=True))
        whole = len(steps) == len(sizes)  # a mean over other sizes would not compare
        lines.append((row["over_bound"] if whole else float("inf"), [
            f"`{name}`", str(METHODS.get(name).scope), str(row["cases"]), cell_text(row["convergence"], ".1%"),
            *(cell_text(steps.get(n), ".0f") for n in sizes), cell_text(row["over_bound"] if whole else None, ".2f"),
            cell_text(earlier[name]["over_bound"], ".2f"),
            cell_text(row["distance_m_per_uav"] if whole else None, ".0f"),
        ]))  # fmt: skip
    least = _bounds(second)
    bound = ["*lower bound*", "", "", "", *(cell_text(least[n], ".0f") for n in sizes), "1.00", "1.00", ""]
    return markdown_table(header, [line for _, line in sorted(lines, key=lambda pair: pair[0])] + [bound])


def paired_table(_: str) -> str:
    """Every comparison that the documents make on the headline's cases, both draws, with 95 % intervals."""
    lines = []
    for method, other in CLAIMS:
        for number in ("2", "1"):
            cells = [_paired_cell(draw(number), method, other, size) for size in SIZES]
            lines.append([f"`{method}` / `{other}`", "second" if number == "2" else "first", *cells])
    return markdown_table(["steps of", "draw", *(f"N={n}" for n in SIZES[:-1]), "all"], lines)


def _paired_cell(rows: pl.DataFrame, method: str, other: str, size: str) -> str:
    chosen = rows if size == "all" else rows.filter(pl.col("uavs") == int(size))
    pair, count = compare_paired(chosen, method, other)
    return interval_text(*pair) if count else cell_text(None, "")


def eight_table(folder: str) -> str:
    """The paper's eight methods, ranked among themselves, with what the paper prints."""
    shown = evidence(folder)
    said = shown.experiment.published
    ranked = sorted(said, key=lambda name: float(rank(name, folder)))
    lines = [[f"`{name}`", rank(name, folder), f"{said[name]['rank']:.2f}", FACTS["seconds"](folder, name),
              f"{said[name]['time_s']:.1f}", FACTS["failed"](folder, name)] for name in ranked]  # fmt: skip
    return markdown_table(["method", "rank of eight", "paper", "time s", "paper", "not reconnected"], lines)


def sensing_table(folder: str) -> str:
    """Recovery time by noise or delay: the first draw and, where a method flew it, the second at the same sizes."""
    first, second = evidence(folder), evidence(f"{folder}-seed-2")
    column, unit = sensed_column(first)
    levels = sorted(first.rows[column].unique())
    lines = []
    for method in first.methods:
        again = second.rows.filter(pl.col("method") == method)
        mine = first.rows.filter(pl.col("method") == method)
        sizes = sorted((mine if again.is_empty() else again)["uavs"].unique())
        for name, rows in (("first", mine.filter(pl.col("uavs").is_in(sizes))), ("second", again)):
            if not rows.is_empty():
                told = interval_text(*sensed_ratio(replace(first, rows=rows), method, levels[-1]))
                times = _times(replace(first, rows=rows), levels)
                lines.append([f"`{method}`", name, *_sizes_and_cases(rows), *times, told])
    header = ["method", "draw", "N", "cases", *(f"{level:g} {unit}" for level in levels), f"{levels[-1]:g} / 0 {unit}"]
    return markdown_table(header, lines)


def _sizes_and_cases(rows: pl.DataFrame) -> tuple[str, str]:
    """("100, 200, 500", "10, 10, 5"): swarm sizes, and how many cases each setting of them has; one number if equal."""
    counts = rows.group_by("leg", "uavs", "damaged").len().group_by("uavs").agg(pl.col("len").min()).sort("uavs")
    sizes, cases = counts["uavs"].to_list(), counts["len"].to_list()
    return ", ".join(map(str, sizes)), ", ".join(map(str, cases if len(set(cases)) > 1 else cases[:1]))


def _times(shown: Evidence, levels: list[float]) -> list[str]:
    means = sensed_means(shown)
    known = dict(zip(means[sensed_column(shown)[0]], means["time_s"], strict=True))
    return [cell_text(known.get(level), ".2f") for level in levels]


INTERVALS = (
    "paired",
    "at_damage",
    "in_experiment",
    "in_folder",
    "across",
    "loss",
    "single_ratio",
    "on_board",
    "filtered",
    "redundant",
)  # facts with a 95 % interval
CELL = re.compile(r"\d \(-?[\d.]+ to -?[\d.]+\)")


@fact
def comparisons(what: str) -> str:
    """How many comparisons have an interval: of the headline's second draw, or in all of the documents."""
    if what == "2":
        second = [line for line in paired_table("").splitlines() if "| second |" in line]
        return str(sum(len(CELL.findall(line)) for line in second))
    texts = [page.read_text(encoding="utf-8") for page in pages()]
    marks = {match[1] for text in texts for match in NUMBER.finditer(text) if match["fact"] in INTERVALS}
    tables = [paired_table(""), sensing_table("noise"), sensing_table("delay"), costs_table(""), methods_table("")]
    entries = [line for line in leaderboard("").splitlines() if len(re.findall(r"\d-\d", line)) == 2]
    return str(len(marks) + sum(len(CELL.findall(table)) for table in tables) + len(entries))


def learning_table(_: str) -> str:
    """Held-out success, time over bound and CPU minutes along the trainings of results/training."""
    lines = []
    for folder in sorted((RESULTS / "training").glob("full-s*")):
        known = {entry["epoch"]: entry for entry in validations(folder)}
        cells = [
            f"{known[n]['success']:.2f}, {known[n]['over_bound']:.2f} ({known[n]['cpu_minutes']:.1f} min)"
            if n in known else cell_text(None, "") for n in LEARNING_EPOCHS
        ]  # fmt: skip
        lines.append([str(read_json(folder / "training.json")["config"]["seed"]), *cells])
    return markdown_table(["seed", *(f"epoch {n}" for n in LEARNING_EPOCHS)], lines)


def learning_plus_table(_: str) -> str:
    """Success and time over bound of the exploring policy and CPU minutes along the trainings of phygail-plus."""
    rows = pl.read_csv(RESULTS / "phygail-plus" / "learning.csv")
    lines = []
    for (seed,), run in rows.group_by("seed", maintain_order=True):
        known = {row["update"]: row for row in run.iter_rows(named=True)}
        cells = [
            f"{known[n]['success']:.2f}, {known[n]['over_bound']:.2f} ({known[n]['cpu_minutes']:.1f} min)"
            for n in PLUS_UPDATES
        ]
        lines.append([str(seed), *cells])
    return markdown_table(["seed", *(f"update {n}" for n in PLUS_UPDATES)], lines)


def learning_lines(name: str) -> str:
    """Some lines of the log of a training, as the terminal shows them."""
    entries = {entry["epoch"]: entry for entry in log_entries(RESULTS / "training" / name)}
    lines = []
    for epoch in (n for n in (1, 10, 20, 60, 150, 300) if n in entries):
        entry, seen = entries[epoch], entries[epoch].get("validation")
        flown, judged = entry["flown"], entry["discriminator"]
        held = f"  | held out: success {seen['success']:.3f}, over bound {seen['over_bound']:.3f}" if seen else ""
        lines.append(
            f"    epoch {epoch}/{max(entries)}  {flown['episodes']:.0f} episodes  success {flown['success']:.2f}  "
            f"over bound {flown['over_bound']:.2f}  ...  D {judged['d_expert']:.2f}/{judged['d_policy']:.2f}{held}\n"
        )
    return "\n" + "".join(lines) + "\n"


def result_table(method: str) -> str:
    """The page of a method: what it did in `overall`, by size."""
    rows = evidence("overall").rows.filter(pl.col("method") == method)
    lines = []
    for row in summarize(rows, "uavs").iter_rows(named=True):
        lines.append([
            str(row["uavs"]), f"{row['cases']:,}", cell_text(row["convergence"], ".1%"), cell_text(row["steps"], ".1f"),
            cell_text(row["over_bound"], ".2f"), cell_text(row["distance_m_per_uav"], ".0f"),
            cell_text(row["contact_events_per_uav"], ".2f"),
        ])  # fmt: skip
    return markdown_table(["N", "cases", "reconnected", "steps", "x bound", "meters", "contacts per UAV"], lines)


def single_table(method: str) -> str:
    """The page of a method for single failures: what it did there, by the number of failures."""
    rows = evidence("single-failure").rows.filter(pl.col("method") == method)
    means = rows.group_by("damaged").agg(
        pl.len().alias("cases"), pl.col("converged").mean(), pl.col("steps").mean(), pl.col("moved").mean(),
        (pl.col("distance_m_per_uav") * pl.col("alive")).mean().alias("meters"), pl.col("messages").mean(),
    )  # fmt: skip
    forms = (("damaged", "d"), ("cases", ",d"), ("converged", ".1%"), ("steps", ".1f"), ("meters", ".1f"),
             ("moved", ".1f"), ("messages", ".1f"))  # fmt: skip
    ordered = means.sort("damaged").iter_rows(named=True)
    lines = [[cell_text(row[name], form) for name, form in forms] for row in ordered]
    return markdown_table(["failures", "cases", "reconnected", "steps", "meters of all", "moved", "messages"], lines)


@fact
def not_on_board(_: str) -> str:
    """The methods that have no entry on the leaderboard."""
    flown = {path.parent.name for path in (RESULTS / "benchmark").glob("*/run.json")}
    return ", ".join(f"`{name}`" for name in METHODS if name not in flown) or "none"


def leaderboard(_: str) -> str:
    """All folders of results/benchmark on one board."""
    entries = [read_entry(path.parent) for path in sorted((RESULTS / "benchmark").glob("*/run.json"))]
    rows = [row for entry in entries for row in entry]
    return board(rows) if rows else "No entry yet.\n"


def report(name: str) -> str:
    """All tables of an experiment, one heading deeper."""
    made = whole_report(name)
    return re.sub("^## ", "### ", made[made.index("\n## ") + 1 :], flags=re.MULTILINE)


def experiments_table(_: str) -> str:
    """A line and a link for every experiment with a page."""
    lines = [[f"[{name}](experiments/{name}.md)", EXPERIMENTS.get(experiment_of(name)).question] for name in reports()]
    return markdown_table(["experiment", "question"], lines)


def radio_table(_: str) -> str:
    """What is said by radio."""
    return "\n".join(radio_tables(read_measures(RESULTS / "propositions" / RADIO))[1:])


KINDS: dict[str, Callable[[str], str]] = {
    "table": comparison_table,
    "draws": draws_table,
    "paired": paired_table,
    "eight": eight_table,
    "sensing": sensing_table,
    "leaderboard": leaderboard,
    "result": result_table,
    "single": single_table,
    "report": report,
    "experiments": experiments_table,
    "radio": radio_table,
    "world-costs": costs_table,
    "world-methods": methods_table,
    "soaks": soaks_table,
    "contacts": contacts_table,
    "redundancy": redundancy_table,
    "learning": learning_table,
    "learning-plus": learning_plus_table,
    "log": learning_lines,
}


# --- pages that are written whole ------------------------------------------------------------------------------------


def reports() -> list[str]:
    """Folders of results/ with the tables of an experiment, in the order of the catalog."""
    order = {name: k for k, name in enumerate(EXPERIMENTS)}
    found = [path.parent.name for path in RESULTS.glob(f"*/{REPORT}")]
    return sorted(found, key=lambda name: (order[experiment_of(name)], name))


@functools.cache
def whole_report(name: str) -> str:
    """tables.md of a folder of results."""
    return report_text(EXPERIMENTS.get(experiment_of(name)), RESULTS / name)


def experiment_page(name: str) -> str:
    """The page of an experiment: its report, with its figures."""
    experiment = EXPERIMENTS.get(experiment_of(name))
    head, tables = re.split(r"(?=\n## )", whole_report(name), maxsplit=1)
    title, rest = head.split("\n", 1)
    draw_of = f", drawn with seed {name.split('-seed-')[1]}" if name != experiment_of(name) else ""
    drawn = [figure for figure in experiment.figures if (RESULTS / name / f"{figure}.png").exists()]
    figures = "".join(f"\n![{experiment.title}](../../results/{name}/{figure}.png)\n" for figure in drawn)
    return f"{title}{draw_of}\n{rest.rstrip()}\n{figures}{tables}"


def written() -> dict[Path, str]:
    """Every file that this script writes, by path."""
    texts = {page: refreshed(page.read_text(encoding="utf-8")) for page in pages()}
    made = {EXPERIMENT_PAGES / f"{name}.md": experiment_page(name) for name in reports()}
    made |= {RESULTS / name / REPORT: whole_report(name) for name in reports()}
    return texts | made | {EXPERIMENT_PAGES / "index.md": experiments_index()}


def experiments_index() -> str:
    """The list of the pages of all experiments."""
    tree = "\n".join(["```{toctree}", ":maxdepth: 1", *reports(), "```"])
    return f"# Experiments\n\nA page per experiment, made from its rows.\n\n{tree}\n"


# --- figures ---------------------------------------------------------------------------------------------------------


def draw_overall(path: Path) -> None:
    """The README's picture: the overall experiment, methods with at least LEAST_CASES cases per setting.

    Three sizes, so that text is legible where the README is 800 pixels wide.
    """
    shown = load_evidence(EXPERIMENTS.get("overall"), RESULTS / "overall").rows
    rows = shown.filter(pl.col("uavs").is_in(LARGE))
    cases = rows.group_by("method", "uavs", "damaged").len().group_by("method").agg(pl.col("len").min())
    names = cases.filter(pl.col("len") >= LEAST_CASES)["method"]
    draw_curves(rows.filter(pl.col("method").is_in(names.implode())), path)


def draw_trained(kind: str) -> None:
    """The curves of the trainings under results/trained, and the histogram of its expert database."""
    from phygail.learning.log import curves_figure
    from phygail.methods.phygail.experts.dataset import ExpertSet, draw_expert_steps
    from phygail.methods.reach_evolved.train import PANELS

    folder = RESULTS / "trained"
    logs = {path.stem: (path, (PANELS,)) for path in folder.glob("*.jsonl")}
    logs["phygail-taught"] = (folder / "phygail-taught" / "log.jsonl", ())
    for name, (path, panels) in logs.items():
        entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        drawer(lambda of: curves_figure(*of))((entries, *panels), folder / f"{name}.{kind}")
    draw_expert_steps(ExpertSet.open(folder / "full.h5"), folder / f"experts.{kind}")


def draw_figures(kinds: list[str]) -> None:
    """Every figure of an experiment, of the trainings, and the README's."""
    for kind in kinds:
        draw_overall(DOCS / "images" / f"overall.{kind}")
        draw_trained(kind)
        for name in reports():
            experiment = EXPERIMENTS.get(experiment_of(name))
            shown = load_evidence(experiment, flights_folder(experiment, RESULTS / name))
            for figure in experiment.figures:
                FIGURES.get(figure)(shown, RESULTS / name / f"{figure}.{kind}")


if __name__ == "__main__":
    for option in sys.argv[1:]:
        draw_figures(["png", *filter(None, option.removeprefix("--figures").strip("=").split(","))])
    EXPERIMENT_PAGES.mkdir(exist_ok=True)
    for page, text in written().items():
        write_text(page, text)
