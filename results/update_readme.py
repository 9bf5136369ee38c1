"""Write the tables of README.md and docs/results.md from the rows under results/: `python results/update_readme.py`.

A table stands between `<!-- table:NAME -->` and `<!-- end -->`; NAME is a folder of results/ that `phygail compare`
made, A+B two folders with the same cases. Between `<!-- report:NAME -->` and `<!-- end -->` stand all tables of the
experiment that `phygail reproduce NAME` made there. A test regenerates every table and compares. The picture of the
README is drawn, too.
"""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from phygail.evaluation.catalog import EXPERIMENTS
from phygail.evaluation.curves import draw_curves
from phygail.evaluation.evidence import load_evidence
from phygail.evaluation.report import report_text
from phygail.evaluation.rows import frame, read_rows
from phygail.evaluation.summary import split_cases, summarize
from phygail.evaluation.tables import cell_text, markdown_table
from phygail.files import write_text
from phygail.methods import METHODS

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "docs/results.md")
LEAST_CASES = 10
REPORT = re.compile(r"(<!-- report:(?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
TABLE = re.compile(r"(<!-- table:(?P<name>[\w+-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def readme_table(rows: pl.DataFrame) -> str:
    """Per method: share reconnected, mean steps per swarm size, time over bound, contacts; best first, bound last."""
    overall, by_size = summarize(rows), summarize(rows, "uavs")
    sizes = sorted(by_size["uavs"].unique())
    header = ["method", "scope", "reconnected", *(f"N={n}" for n in sizes), "x bound", "contacts per UAV"]
    lines = []
    for row in overall.iter_rows(named=True):
        mine = by_size.filter(pl.col("method") == row["method"])
        steps = dict(zip(mine["uavs"], mine["steps"], strict=True))
        scope = str(METHODS.get(row["method"]).scope)
        cells = [cell_text(steps[n], ".0f") for n in sizes]
        contacts = cell_text(row["contact_events_per_uav"], ".2f")
        over = cell_text(row["over_bound"], ".2f")
        lines.append([f"`{row['method']}`", scope, cell_text(row["convergence"], ".1%"), *cells, over, contacts])
    bounds = split_cases(rows).unique("scenario").group_by("uavs").agg(pl.col("bound_steps").mean())
    least = dict(zip(bounds["uavs"], bounds["bound_steps"], strict=True))
    lines.append(["*lower bound*", "", "", *(cell_text(least[n], ".0f") for n in sizes), "1.00", ""])
    return markdown_table(header, lines)


def refreshed(text: str) -> str:
    """A page with every table made anew."""

    def table(match: re.Match[str]) -> str:
        folders = [ROOT / "results" / name for name in match["name"].split("+")]
        rows = frame([row for folder in folders for row in read_rows(folder / "rows.csv")])
        return f"{match[1]}{readme_table(rows)}{match[3]}"

    def report(match: re.Match[str]) -> str:
        made = report_text(EXPERIMENTS.get(match["name"]), ROOT / "results" / match["name"])
        tables = made[made.index("\n## ") + 1 :]  # the title is the page's own
        return f"{match[1]}{re.sub('^## ', '### ', tables, flags=re.MULTILINE)}{match[3]}"

    return REPORT.sub(report, TABLE.sub(table, text))


def draw_overall(path: Path) -> None:
    """The README's picture: the overall experiment, methods with at least LEAST_CASES cases per setting."""
    rows = load_evidence(EXPERIMENTS.get("overall"), ROOT / "results" / "overall").rows
    cases = rows.group_by("method", "uavs", "damaged").len().group_by("method").agg(pl.col("len").min())
    shown = cases.filter(pl.col("len") >= LEAST_CASES)["method"]
    draw_curves(rows.filter(pl.col("method").is_in(shown.implode())), path)


if __name__ == "__main__":
    draw_overall(ROOT / "docs" / "images" / "overall.png")
    for name in PAGES:
        page = ROOT / name
        write_text(page, refreshed(page.read_text(encoding="utf-8")))
