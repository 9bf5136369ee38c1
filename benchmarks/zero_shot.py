"""The yardstick of `phygail-plus`: mean steps of policies in swarms larger than any that they learned with.

    OMP_NUM_THREADS=1 python benchmarks/zero_shot.py [--seed 880000] [--sizes 100 200] [--untrained] [FILE ...]

Ten swarms each of 100 and 200 UAVs at damage .45, .65, .75, .85 and .95 are flown by every policy (FILE.safetensors
of a run, or FILE.onnx), all swarms of a cell at once, without the aggregation phase: a flight that does not reconnect
counts with its whole budget. `reach-evolved`, `reach` and `sidr` fly the same cases as methods; their rows are
kept in --rules and flown once. With --untrained so does the network of `phygail-plus` with random weights: the control
of what its given parts do alone. Seed 880000 drives decisions; figures for a report come from another one.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from phygail.learning.networks import load_weights, one_thread
from phygail.learning.worlds import DAMAGE, zero_shot
from phygail.methods import run_episode
from phygail.methods.phygail import PLUS_KIND, VERSION, PlusPolicy
from phygail.methods.phygail.export import rebuilt
from phygail.methods.phygail.graph import GraphSpec
from phygail.methods.phygail.learner import Decide, decider, fly_all, open_actor
from phygail.methods.phygail.plus_batch import PlusObservation
from phygail.swarm.scenario import Scenario
from phygail.swarm.tree import bound_steps
from phygail.weights import bundled

RULES = ("reach-evolved", "reach", "sidr")
UNTRAINED = "untrained"
ROWS = Path(__file__).parent.parent / "results" / "phygail-plus" / "yardstick.csv"
COLUMNS = ("seed", "uavs", "case", "method", "success", "steps")


def open_policy(path: Path) -> tuple[Decide, GraphSpec]:
    """What decides in a graph, and which graph it reads."""
    if path.suffix == ".onnx":
        policy = PlusPolicy(path.read_bytes(), str(path))
        return policy.actions, policy.graph_spec
    actor, spec = open_actor(path)
    return decider(actor), spec


def open_untrained() -> tuple[Decide, GraphSpec]:
    """The same of the network in the package, its weights drawn anew."""
    _, config = load_weights(bundled("phygail-plus"), PLUS_KIND, VERSION)
    torch.manual_seed(0)
    return decider(rebuilt(config)), GraphSpec(**config["graph"])


def fly_policy(opened: tuple[Decide, GraphSpec], cells: Sequence[Sequence[Scenario]]) -> tuple[np.ndarray, np.ndarray]:
    """(success, steps) of all cases, cell by cell."""
    decide, spec = opened
    flown = [fly_all(decide, cell, PlusObservation(spec)) for cell in cells]
    success, steps = (np.concatenate(part) for part in zip(*flown, strict=True))
    return success, steps


def fly_rule(method: str, cells: Sequence[Sequence[Scenario]], seed: int, file: Path) -> tuple[np.ndarray, np.ndarray]:
    """The same of a method (or of the untrained network), from its rows if it has flown these cases before."""
    cases = [case for cell in cells for case in cell]
    known = list(csv.DictReader(file.open())) if file.exists() else []
    uavs = cases[0].uavs
    mine = {
        row["case"]: (row["success"] == "1", int(row["steps"]))
        for row in known
        if (row["seed"], row["uavs"], row["method"]) == (str(seed), str(uavs), method)
    }
    fresh = [case for case in cases if case.id not in mine]
    if fresh and method == UNTRAINED:
        flown = zip(*fly_policy(open_untrained(), cells), strict=True)
        mine = {case.id: (bool(success), int(steps)) for case, (success, steps) in zip(cases, flown, strict=True)}
        fresh = cases
    for case in () if method == UNTRAINED else fresh:
        flight = run_episode(case, method)
        mine[case.id] = (flight.terminated, flight.scored_steps)
    if fresh:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", newline="") as out:
            rows = [(seed, uavs, case.id, method, int(mine[case.id][0]), mine[case.id][1]) for case in fresh]
            csv.writer(out, lineterminator="\n").writerows(rows if known else [COLUMNS, *rows])
    success, steps = zip(*[mine[case.id] for case in cases], strict=True)
    return np.array(success), np.array(steps)


def show(name: str, success: np.ndarray, steps: np.ndarray, cases: int, seconds: float) -> str:
    """A line: mean steps per damage ratio, their mean, and how many reconnected."""
    cells = " ".join(f"{value:>7.1f}" for value in steps.reshape(-1, cases).mean(axis=1))
    return f"{name:>34} {cells} {steps.mean():>8.1f} {success.sum():>5}/{len(success)} {seconds:>6.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policies", type=Path, nargs="*")
    parser.add_argument("--seed", type=int, default=880_000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 200])
    parser.add_argument("--cases", type=int, default=10, help="per damage ratio")
    parser.add_argument("--rules", type=Path, default=ROWS)
    parser.add_argument("--untrained", action="store_true", help="fly the network of phygail-plus with random weights")
    options = parser.parse_args()
    with one_thread():
        for uavs in options.sizes:
            cases = zero_shot(uavs, options.cases, options.seed)
            cells = [cases[first : first + options.cases] for first in range(0, len(cases), options.cases)]
            bounds = np.array([bound_steps(case.spots, case.physics) for case in cases])
            print(
                f"{f'N = {uavs}':>34} "
                + " ".join(f"{ratio:>7g}" for ratio in DAMAGE)
                + f" {'mean':>8} {'whole':>8}  CPU s"
            )
            for path in options.policies:
                begun = time.process_time()
                success, steps = fly_policy(open_policy(path), cells)
                name = f"{path.parent.name}/{path.stem}"[-34:]
                print(show(name, success, steps, options.cases, time.process_time() - begun), flush=True)
            for method in (*RULES, *((UNTRAINED,) if options.untrained else ())):
                begun = time.process_time()
                success, steps = fly_rule(method, cells, options.seed, options.rules)
                print(show(method, success, steps, options.cases, time.process_time() - begun), flush=True)
            print(show("bound", bounds >= 0, bounds, options.cases, 0.0))


if __name__ == "__main__":
    main()
