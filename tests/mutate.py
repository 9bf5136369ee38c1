"""How much do the tests know? Change the rules on purpose, one place at a time, and count who notices.

    python -m tests.mutate [swarm/links.py ...] [--count 40] [--list] [--missing] [--only TEXT]

For every module named in `NEIGHBORS` (all unless some are named) a sample of `--count` mutants is made: a comparison
with or without its bound, another constant, another operator, a condition reversed, a statement or a keyword left out,
`min` for `max`. The test files next to the module then run on each. A mutant that fails a test, or that takes more than
five times the time of the tests, is killed; one that survives shows something that no test knows. Rows go to
results/mutation/mutants.csv, the table to results/mutation/report.md; what is known about survivors stands in
results/mutation/explained.toml. The sample depends on the text of the module only. After an edit of a module
`--missing` runs what is new in its sample, and survivors that nobody has explained; the other rows stay.

Mutants live in memory: a forked process imports the changed module, so no file is touched. Processor time is what
counts, so a busy machine kills nobody.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import csv
import importlib
import importlib.machinery
import json
import os
import resource
import sys
import time
import tomllib
from collections import Counter
from pathlib import Path

from tests.mutants import changed, find_mutants

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "phygail"
OUT = ROOT / "results" / "mutation"
COUNT = 40
SLOWER, SPARE_S = 5, 10  # a mutant may take so many times the time of the tests, and this long on top
MEMORY_B = 8 * 2**30
WANTED = 0.9  # share killed, of those that are not equivalent
EXPLAINED = ("equivalent", "rounding", "speed")  # kinds of survivors that no test can or should kill

# Module -> the test files next to it, the quickest first.
NEIGHBORS: dict[str, tuple[str, ...]] = {
    "swarm/links.py": ("swarm/test_links.py", "swarm/test_links_radio.py"),
    "swarm/tree.py": ("swarm/test_tree.py", "swarm/test_tree_bounds.py"),
    "swarm/simulator.py": (
        "swarm/test_simulator.py",
        "swarm/test_simulator_metrics.py",
        "swarm/test_simulator_episode.py",
    ),
    "swarm/layout.py": (
        "swarm/test_layout_damage.py",
        "swarm/test_layout_formation.py",
        "swarm/test_layout_paper.py",
    ),
    "swarm/safety.py": ("swarm/test_safety.py",),
    "swarm/scenario.py": ("swarm/test_scenario.py", "swarm/test_scenario_files.py", "swarm/test_scenario_world.py"),
    "sensing/views.py": ("sensing/test_views.py",),
    "sensing/beliefs.py": ("sensing/test_beliefs.py",),
    "methods/steering.py": (
        "methods/test_steering_forces.py",
        "methods/test_steering_links.py",
        "methods/test_steering_projection.py",
    ),
}


# --- running tests on them -------------------------------------------------------------------------------------------


class _Mutated(importlib.machinery.SourceFileLoader):
    """Compiles the changed tree instead of the file."""

    def __init__(self, name: str, path: str, tree: ast.Module) -> None:
        super().__init__(name, path)
        self._tree = tree

    def get_code(self, fullname: str):
        return compile(self._tree, self.path, "exec")


class _Finder:
    """Finds one module in its changed form."""

    def __init__(self, module: str, tree: ast.Module) -> None:
        self._module, self._tree = module, tree
        self._name = "phygail." + module.removesuffix(".py").replace("/", ".")

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        loader = _Mutated(name, str(PACKAGE / self._module), self._tree)
        return importlib.machinery.ModuleSpec(name, loader, origin=loader.path)


def run_tests(files: tuple[str, ...], mutated: _Finder | None, most_s: float) -> tuple[str, float, list[str]]:
    """(verdict, processor time in s, names of imported modules) of tests in a process of their own."""
    reader, writer = os.pipe()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    pid = os.fork()
    if not pid:
        _run_here(files, mutated, most_s, writer)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    _, status = os.waitpid(pid, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if os.WIFSIGNALED(status):
        return "too long" if os.WTERMSIG(status) in (24, 9) else "crashed", spent, []  # 24: SIGXCPU
    answer = json.loads(said) if said else {"failed": "?", "imported": []}
    code = os.WEXITSTATUS(status)
    return "survived" if code == 0 else answer["failed"] or f"exit code {code}", spent, answer["imported"]


def _run_here(files: tuple[str, ...], mutated: _Finder | None, most_s: float, writer: int) -> None:
    """The child: never returns."""
    limit = int(most_s)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_B, MEMORY_B))
    quiet = os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1, 2):
        os.dup2(quiet, handle)
    sys.path.insert(0, str(ROOT / "src"))
    if mutated:
        sys.meta_path.insert(0, mutated)
    code, failed = 3, ""
    try:
        code, failed = _pytest(files)
    finally:
        os.write(writer, json.dumps({"failed": failed, "imported": list(sys.modules)}).encode())
        os._exit(code)


def _pytest(files: tuple[str, ...]) -> tuple[int, str]:
    """(exit code, name of the first test that failed)."""
    import hypothesis
    import pytest

    # The same examples for every mutant; on a busy machine a slow one is no failure.
    hypothesis.settings.register_profile("mutants", derandomize=True, deadline=None, database=None)
    hypothesis.settings.load_profile("mutants")

    class First:
        name = ""

        def pytest_runtest_logreport(self, report) -> None:
            if report.failed and not self.name:
                self.name = report.nodeid.partition("::")[2].partition("[")[0]

        def pytest_collectreport(self, report) -> None:
            if report.failed and not self.name:
                self.name = "import"

    first = First()
    paths = [str(ROOT / "tests" / file) for file in files]
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:timeout", "-o", "timeout=0"]
    return int(pytest.main([*options, "--rootdir", str(ROOT), *paths], plugins=[first])), first.name


def preload(modules: list[str]) -> None:
    """Import what the tests need of others, once for all children."""
    for name in modules:
        top = name.partition(".")[0]
        if top not in ("phygail", "tests", "__main__", "conftest"):
            with contextlib.suppress(Exception):  # a module that imports only under pytest is imported there
                importlib.import_module(name)


# --- rows and report -------------------------------------------------------------------------------------------------

COLUMNS = ("module", "line", "place", "kind", "mutant", "verdict")


def mutate_module(module: str, count: int, only: str, *, missing: bool = False) -> list[dict[str, str]]:
    """A row per mutant of the sample; `missing`: those that are known are not run again."""
    source = (PACKAGE / module).read_text(encoding="utf-8")
    tree, files = ast.parse(source), NEIGHBORS[module]
    everyone = find_mutants(source)
    rows = todays_rows(module, count) if missing else []
    known = {(row["place"], row["kind"], row["mutant"]) for row in rows}
    chosen = (m for m in everyone[:count] if only in m.text and (m.place, m.kind, m.text) not in known)
    mutants = sorted(chosen, key=lambda m: (m.line, m.text))
    if not mutants:
        return rows
    verdict, _, modules = run_tests(files, None, 600)
    preload(modules)
    verdict, usual, _ = run_tests(files, None, 600)
    if verdict != "survived":
        raise SystemExit(f"the tests of {module} fail without any mutant ({verdict}): mend them first")
    print(f"{module}: {len(mutants)} of {len(everyone)} mutants; the tests take {usual:.1f} s", flush=True)
    for number, mutant in enumerate(mutants, 1):
        start = time.monotonic()
        finder = _Finder(module, changed(tree, mutant))
        verdict, spent, _ = run_tests(files, finder, SLOWER * usual + SPARE_S)
        cells = (module, str(mutant.line), mutant.place, mutant.kind, mutant.text, verdict)
        rows.append(dict(zip(COLUMNS, cells, strict=True)))
        if missing and not only:
            save_rows(rows)  # what is known is not run again after an interruption
        mark = "SURVIVED" if verdict == "survived" else f"killed by {verdict}"
        wall = time.monotonic() - start
        print(f"  {number:3d} {mutant.place}:{mutant.line} {mutant.text}: {mark} ({spent:.1f} s, {wall:.0f} s wall)",
              flush=True)  # fmt: skip
    return rows


def read_rows() -> list[dict[str, str]]:
    """The rows of mutants.csv."""
    path = OUT / "mutants.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def todays_rows(module: str, count: int = COUNT) -> list[dict[str, str]]:
    """The rows of today's sample of a module that are killed or explained, with today's line numbers."""
    rows = {(row["place"], row["kind"], row["mutant"]): row for row in read_rows() if row["module"] == module}
    sample = find_mutants((PACKAGE / module).read_text(encoding="utf-8"))[:count]
    found = [(m, rows[m.place, m.kind, m.text]) for m in sample if (m.place, m.kind, m.text) in rows]
    judgments = judged([row | {"line": str(mutant.line)} for mutant, row in found])
    return [row for row, kind, _ in judgments if kind != "survived"]


def save_rows(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Replace the rows of these modules in mutants.csv; gives all rows."""
    OUT.mkdir(parents=True, exist_ok=True)
    fresh = {row["module"] for row in rows}
    kept = [row for row in read_rows() if row["module"] not in fresh] + rows
    kept.sort(key=lambda row: (list(NEIGHBORS).index(row["module"]), int(row["line"]), row["mutant"]))
    with (OUT / "mutants.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)
    return kept


def read_explained() -> dict[tuple[str, str, str], tuple[str, str]]:
    """(module, place, mutant) -> (kind, why)."""
    path = OUT / "explained.toml"
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["survivor"] if path.exists() else []
    return {(e["module"], e["place"], e["mutant"]): (e["kind"], e["why"]) for e in entries}


def judged(rows: list[dict[str, str]]) -> list[tuple[dict[str, str], str, str]]:
    """(row, kind, why): killed, what is known about a survivor, or that nothing is."""
    explained = read_explained()
    fates = []
    for row in rows:
        kind, why = "killed", ""
        if row["verdict"] == "survived":
            key = row["module"], row["place"], row["mutant"]
            kind, why = explained.get(key, ("survived", "not explained yet"))
        fates.append((row, kind, why))
    return fates


def _counts(fates: list[tuple[dict[str, str], str, str]]) -> Counter[str]:
    return Counter(kind if kind in ("killed", *EXPLAINED) else "survived" for _, kind, _ in fates)


def share_killed(rows: list[dict[str, str]]) -> float:
    """Of those that a test could kill."""
    counts = _counts(judged(rows))
    return counts["killed"] / max(1, counts["killed"] + counts["survived"])


def report_text(rows: list[dict[str, str]]) -> str:
    """report.md: a line per module, then every survivor with its line and what is known about it."""
    fates = judged(rows)
    lines = [
        _line(f"`{module}`", _counts(mine))
        for module in NEIGHBORS
        if (mine := [fate for fate in fates if fate[0]["module"] == module])
    ]
    table = ["| module | mutants | killed | survived | equivalent | only rounding | only speed | share killed |",
             "|---|---:|---:|---:|---:|---:|---:|---:|", *lines, _line("all", _counts(fates))]  # fmt: skip
    known = [
        f"- `{row['module']}:{row['line']}` {row['place']}: `{row['mutant']}`. **{kind}**: {why}"
        for row, kind, why in fates
        if kind != "killed"
    ]
    counts = _counts(fates)
    others = counts.total() - counts["equivalent"]
    killed = counts["killed"]
    strictly = f"Of the {others} that are not the same program {killed} are killed, {killed / others:.0%}."
    return "\n".join([_HEAD, *table, "", strictly, "", "## Survivors", "", *known]) + "\n"


def _line(name: str, counts: Counter[str]) -> str:
    able = counts["killed"] + counts["survived"]
    numbers = [counts.total(), counts["killed"], counts["survived"], *(counts[kind] for kind in EXPLAINED)]
    share = f"{counts['killed'] / able:.0%}" if able else "-"
    return f"| {name} | " + " | ".join(map(str, numbers)) + f" | {share} |"


_HEAD = f"""# What the tests know: mutants killed

    python -m tests.mutate

A sample of up to {COUNT} changes of each module, one at a time, with only the test files next to it
(`NEIGHBORS` in `tests/mutate.py`). A mutant that fails a test or takes five times as long is killed. The share killed
is of those that a test could kill: left out are mutants that are the same program (equivalent), differ in the last
bits only, or only in speed. Every mutant: `mutants.csv`. With `--missing` only those without a row are run.
"""


def main() -> int:
    """Mutate, tell, exit code 1 below the wanted share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", default=[], help="below src/phygail; all unless named")
    parser.add_argument("--count", type=int, default=COUNT, help="mutants per module")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    parser.add_argument("--missing", action="store_true", help="only mutants that are not known yet; other rows stay")
    parser.add_argument("--report", action="store_true", help="only write report.md anew, from mutants.csv")
    parser.add_argument("--only", default="", help="only mutants with this text; nothing is written")
    options = parser.parse_args()
    if options.list:
        for module in options.modules or NEIGHBORS:
            for mutant in find_mutants((PACKAGE / module).read_text(encoding="utf-8"))[: options.count]:
                print(f"{module}:{mutant.line} {mutant.place} {mutant.kind}: {mutant.text}")
        return 0
    for module in [] if options.report else options.modules or NEIGHBORS:
        found = mutate_module(module, options.count, options.only, missing=options.missing)
        if not options.only:
            save_rows(found)
    if options.only:
        return 0
    rows = read_rows()
    text = report_text(rows)
    (OUT / "report.md").write_text(text, encoding="utf-8")
    print(text)
    return 0 if share_killed(rows) >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
