"""Issue 17, item 2: results under new names; tables and pages made again from the rows. `python names_results.py DIR [--figures]`"""

import importlib.util
import json
import sys
from pathlib import Path

ROOT = Path(sys.argv[1]).resolve()


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    m = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(m)
    return m


rename = load("rename_methods", ROOT / "results/rename_methods.py")
if "--tables-only" not in sys.argv:
    assert rename.main([str(ROOT / "results")]) == 0
from phygail.experiments.catalog import EXPERIMENTS
from phygail.experiments.reproduce import REPORT, report_text, write_report
from phygail.experiments.rows import read_rows, rows_table
from phygail.experiments.summary import summary_markdown

RESULTS = ROOT / "results"
for path in sorted(RESULTS.glob("*/summary.md")):
    folder = path.parent
    record = json.loads((folder / "run.json").read_text())
    path.write_text(
        summary_markdown(rows_table(read_rows(folder / "rows.csv")), record["config"], record["run"]["command"])
    )
for path in sorted(RESULTS.glob(f"*/{REPORT}")):
    name = path.parent.name
    path.write_text(report_text(EXPERIMENTS.get(name), path.parent))
    if "--figures" in sys.argv:
        write_report(EXPERIMENTS.get(name), path.parent)
pages = load("update_readme", RESULTS / "update_readme.py")
for name in pages.PAGES:
    page = ROOT / name
    page.write_text(pages.refreshed(page.read_text(encoding="utf-8")), encoding="utf-8")
if "--figures" in sys.argv:
    pages.draw_overall(ROOT / "docs/images/overall.png")
    from phygail.experiments.figures import draw_curves, draw_over_bound

    for path in sorted(RESULTS.glob("*/summary.md")):
        rows = rows_table(read_rows(path.parent / "rows.csv"))
        for name, draw in (("curves", draw_curves), ("over_bound", draw_over_bound)):
            if (path.parent / f"{name}.png").exists():
                draw(rows, path.parent / f"{name}.png")
