"""Issue 17, item 2: the rename table of HOUSE 5.2, identifier by identifier: `python words.py DIR` after names.py."""

from __future__ import annotations

import io
import re
import sys
import tokenize
from pathlib import Path

ROOT = Path(sys.argv[1]).resolve()
E = "experiments/*.py experiments/test_*.py"
R = "methods/reach_evolved/*.py"
S = "sensing/*.py methods/controller.py methods/sidr.py methods/test_*.py methods/reach_evolved/*.py sensing/test_*.py"
# (old, new, files below src/phygail and tests; * = everywhere)
WORDS = [
    ("complain", "note", "*"),
    ("Pictures", "Estimates", S),
    ("split_pictures", "own_estimates", S),
    ("picture", "own_estimate", S),
    ("pictures", "estimates", S),
    ("pilots", "owners", "sensing/*.py methods/reach_evolved/beliefs.py"),
    ("decide_late", "decide_delayed", S),
    ("LateBeliefs", "DelayedBeliefs", S),
    ("_late", "_delayed", "methods/reach_evolved/__init__.py"),
    ("late_views", "delayed_views", "sensing/test_*.py"),
    ("_Pilots", "_RuleCopies", "methods/controller.py"),
    ("pilots", "copies", "methods/controller.py"),
    ("heft", "pull_weight", "methods/steering.py methods/test_steering*.py methods/reach_evolved/__init__.py"),
    ("mass", "pull_weight", "methods/reach_evolved/compiled.py"),
    ("ease", "base_weight", R),
    ("EASE_LIMITS", "BASE_WEIGHT_LIMITS", R),
    ("late", "aggregation", "methods/reach_evolved/compiled.py methods/reach_evolved/train.py"),
    ("Flight", "PlannedFlight", "methods/convex/*.py"),
    ("Flight", "EpisodeResult", "methods/phygail/*.py"),
    (
        "frame",
        "rows_table",
        "experiments/rows.py experiments/runner.py experiments/statistics.py experiments/test_*.py test_*.py ../results/update_readme.py ../benchmarks/*.py",
    ),
    ("belief", "distribution", "methods/phygail/mappo.py methods/phygail/rollout.py"),
    (
        "reach",
        "range_m",
        "envs/recovery_v0.py methods/steering.py methods/cr_ma/*.py methods/reach_evolved/compiled.py methods/reach_evolved/beliefs.py methods/gcn_planners/demd.py methods/reach.py swarm/layout.py",
    ),
    ("reach", "limit_m", "methods/phygail/graph_batch.py swarm/links.py"),
    ("reach", "plan_range", "methods/gdr_ts/__init__.py"),
    ("reach", "range_column", "methods/gdr_ts/policy.py"),
    ("reach", "longest", "methods/convex/search.py"),
    ("reach", "teacher", "methods/reach_evolved/lessons.py"),
    ("wreck", "damaged_spots", "sensing/imperfect.py"),
    ("kin", "siblings", E + " cli/reproduce.py"),
    ("crew", "engine", "experiments/runner.py"),
    ("_Agenda", "_Queue", E),
    ("_agenda", "_queue", E),
    ("fate", "exit_reason", "experiments/engine.py experiments/ray_engine.py experiments/test_engine.py"),
    ("verdict", "flag", "experiments/task.py experiments/engine.py experiments/test_*.py"),
    ("meeting", "paired_batches", "methods/phygail/*.py"),
    ("blurred", "noisy", "methods/phygail/*.py"),
    ("elsewhere", "shift_center", "methods/phygail/*.py"),
    ("wider", "widen_map", "methods/phygail/*.py"),
    ("Listed", "CaseList", "*"),
    ("Given", "ChosenCases", "envs/*.py"),
    ("Drawn", "DrawnCases", "envs/*.py"),
    ("_check_unlike", "_check_distinct", E),
    ("unlike", "differing", "experiments/experiment.py"),
]


def files(pattern: str):
    if pattern == "*":
        yield from (ROOT / "src").rglob("*.py")
        yield from (ROOT / "tests").rglob("*.py")
        yield from (ROOT / "benchmarks").glob("*.py")
        yield from (ROOT / "examples").glob("*.py")
        yield from (ROOT / "results").glob("*.py")
        return
    for part in pattern.split():
        for base in (ROOT / "src/phygail", ROOT / "tests"):
            yield from base.glob(part)


def rename(text: str, old: str, new: str) -> tuple[str, int, bool]:
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    edits, taken = [], False
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        start = starts[token.start[0] - 1] + token.start[1]
        if token.type == tokenize.NAME:
            taken |= token.string == new
            if token.string == old:
                edits.append((start, start + len(old), new))
        elif token.type in (tokenize.STRING, tokenize.COMMENT):
            fresh = re.sub(rf"`{re.escape(old)}`", f"`{new}`", token.string)
            if token.type == tokenize.STRING and re.match(r"[rR]?[fF]", token.string):
                fresh = re.sub(r"\{[^{}]*\}", lambda m: re.sub(rf"(?<![\w'\"]){re.escape(old)}\b", new, m[0]), fresh)
            if fresh != token.string:
                edits.append((start, start + len(token.string), fresh))
    out, place = "", 0
    for a, b, fresh in sorted(edits):
        out += text[place:a] + fresh
        place = b
    return out + text[place:], len(edits), taken


def main():
    for old, new, pattern in WORDS:
        total = 0
        for path in sorted(set(files(pattern))):
            if not path.exists() or path.name in ("_moved.py", "test_old_imports.py") or "data" in path.parts:
                continue
            text = path.read_text(encoding="utf-8")
            if not re.search(rf"\b{re.escape(old)}\b", text):
                continue
            fresh, count, taken = rename(text, old, new)
            if count:
                total += count
                if taken:
                    print(f"CHECK {path.relative_to(ROOT)}: {new} was there already ({old})")
                path.write_text(fresh, encoding="utf-8")
        if not total:
            print(f"nothing called {old} in {pattern}")
