"""Made the frozen cases of `phygail benchmark`, once: `python tools/benchmark_cases.py FILE.json`. Keep it."""

import json
import sys
from pathlib import Path

import numpy as np

from phygail.config import InputError, Physics
from phygail.experiments.experiment import draw_strike
from phygail.experiments.failures import Failures
from phygail.experiments.grid import Grid, damaged_layouts
from phygail.swarm.links import find_links
from phygail.swarm.scenario import load_scenarios, make_scenario, scenario_to_json

SEED = 900  # drove no decision
RADIOS = (
    Physics(40.0, 3.0, 0.1, 2.0),  # small and slow
    Physics(120.0, 10.0, 0.05, 10.0),  # the paper's, decided twice as often
    Physics(300.0, 15.0, 0.2, 5.0),
    Physics(1000.0, 20.0, 0.5, 20.0),  # long-range radio, fixed-wing speed
)


def drawn():
    """(part, scenario) of everything that is drawn."""
    for uavs in (20, 50, 100, 200, 500):
        for ratio in np.arange(0.05, 0.96, 0.1).round(2).tolist():
            try:
                for scenario in Grid((uavs,), (ratio,), 2, SEED).scenarios():
                    yield "swarms", scenario
            except InputError as error:
                print(error)
    for uavs in (50, 100, 200):
        for ratio in (0.3, 0.6):
            for case in range(2):
                yield "strikes", draw_strike(uavs, ratio, case, SEED)
        for count, source in ((1, "single"), (3, "region")):
            cases = Failures((uavs,), (count,), source, 2, SEED)
            for index in range(2):
                yield "few-failures", cases.scenario(index)
    for number, physics in enumerate(RADIOS):
        for uavs in (50, 100):
            for scenario in Grid((uavs,), (0.3, 0.6, 0.9), 1, SEED, physics).scenarios():
                yield f"radios/{number}", scenario
    for scenario in damaged_layouts(["paper-100", "paper-200"], [0.25, 0.5, 0.75], 1, SEED):
        yield "paper-layouts", scenario


def rounded(part, scenario):
    """The scenario with coordinates in millimeters, checked: still split, nobody nearer than before."""
    layout, physics = scenario.layout.round(3), scenario.physics
    case = make_scenario(
        f"{part}/{scenario.id}", layout, scenario.damaged.tolist(), width_m=scenario.width_m, center=scenario.center,
        physics=physics,
    )  # fmt: skip
    before, after = (find_links(s.spots, physics.range_m, physics.contact_m) for s in (scenario, case))
    assert after.count == before.count > 1, case.id
    assert len(after.contacts) == len(before.contacts), case.id
    return case


def shapes():
    """Where rules failed once: rings around the center, a vehicle of 0.2 m a step (AUDIT R1, R3)."""
    for path in sorted(Path("tests/data/failures").glob("*.json")):
        for scenario in load_scenarios(path):
            entry = scenario_to_json(scenario)
            yield entry | {"id": f"shapes/{path.stem}"}


if __name__ == "__main__":
    entries = [scenario_to_json(rounded(*pair)) for pair in drawn()] + list(shapes())
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in entries)
    Path(sys.argv[1]).write_text('{"scenarios": [\n' + lines + "\n]}\n", encoding="utf-8")
    print(len(entries), "cases")
