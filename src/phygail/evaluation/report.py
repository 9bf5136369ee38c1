"""The report of an experiment: made from rows on disk alone, so that anybody can make it again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from phygail.evaluation.evidence import Evidence, load_evidence
from phygail.evaluation.experiment import Experiment
from phygail.evaluation.failure_report import draw_failures, failures, failures_by_size
from phygail.evaluation.figures import draw_curves, draw_over_bound
from phygail.evaluation.neighbors_figure import draw_neighbors
from phygail.evaluation.proposition_tables import propositions, terminal_reward
from phygail.evaluation.report_tables import TABLES
from phygail.evaluation.sensing_figure import draw_sensing
from phygail.evaluation.trained_tables import case_study, draw_learning, learning, variants
from phygail.files import write_text
from phygail.registry import Registry

REPORT = "tables.md"

TABLES.add("propositions", propositions)
TABLES.add("variants", variants)
TABLES.add("learning", learning)
TABLES.add("case-study", case_study)
TABLES.add("terminal-reward", terminal_reward)

TABLES.add("failures", failures)
TABLES.add("failures-by-size", failures_by_size)

FIGURES: Registry[Callable[[Evidence, Path], None]] = Registry("figure")
FIGURES.add("curves", lambda evidence, path: draw_curves(evidence.rows, path))
FIGURES.add("over-bound", lambda evidence, path: draw_over_bound(evidence.rows, path))
FIGURES.add("sensing", draw_sensing)
FIGURES.add("learning", draw_learning)
FIGURES.add("neighbors", draw_neighbors)
FIGURES.add("failures", draw_failures)


def flights_folder(experiment: Experiment, out: Path) -> Path:
    """Where the rows live: in `out`, or beside it with the experiment whose flights these are."""
    return out.parent / experiment.flights_of if experiment.flights_of else out


def report_text(experiment: Experiment, out: Path) -> str:
    """tables.md of the rows that stand on disk."""
    return _text(load_evidence(experiment, flights_folder(experiment, out)))


def write_report(experiment: Experiment, out: Path) -> Evidence:
    """Write tables.md and the figures; gives what they were made from."""
    evidence = load_evidence(experiment, flights_folder(experiment, out))
    write_text(out / REPORT, _text(evidence))
    for name in experiment.figures:
        FIGURES.get(name)(evidence, out / f"{name}.png")
    return evidence


def _text(evidence: Evidence) -> str:
    tables = [TABLES.get(name)(evidence) for name in evidence.experiment.tables]
    return "\n".join([heading(evidence.experiment, evidence.runs, evidence.version), *tables, closing(evidence)])


def heading(experiment: Experiment, runs: Iterable[dict[str, Any]], version: str) -> str:
    """Title, question, and how the rows were made: commands, version, machine."""
    runs = list(runs)
    commands = dict.fromkeys(run["command"] for run in runs if run.get("command"))
    machines = dict.fromkeys(_machine(run["machine"]) for run in runs if "machine" in run)
    loads = [run["machine"]["load"] for run in runs if run.get("machine", {}).get("load") is not None]
    busy = f"; load at the start of its runs {min(loads):g} to {max(loads):g}" if loads else ""
    lines = [f"# {experiment.title}\n", f"{experiment.question}\n", *(f"    {command}" for command in commands)]
    return "\n".join([*lines, "", f"phygail {version} on {' and '.join(machines) or 'an unknown machine'}{busy}.\n"])


def _machine(about: dict[str, Any]) -> str:
    return f"{about['processor']}, {about['cores']} cores, {about['system']}, Python {about['python']}"


def closing(evidence: Evidence) -> str:
    """What was skipped, left out or failed, and what a reader must know to compare."""
    lines = [*evidence.notes, *evidence.experiment.remarks]
    return "\n".join(["## Notes\n", *(f"- {line.rstrip('.')}." for line in lines)]) + "\n"
