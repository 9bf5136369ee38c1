"""Which weights of the evolved rule are best? Their steps on fresh cases, by the compiled loop that training flies.

    python benchmarks/policies.py [--rows results/trained/selection.csv] [FILE.safetensors ...]

A row per policy, swarm size, damage ratio and case, then ratios to the first policy: the mean over swarm sizes of the
mean steps of one over those of the other. Cases are drawn with a seed that nothing else uses. Without files: the
weights that were evolved while links were kept by averaging, and the three that were evolved under exact links, of
which the best here is the bundled one.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

import numpy as np
import safetensors.numpy

from phygail.methods.reach_evolved import GateShape
from phygail.methods.reach_evolved.compiled import fly_policy
from phygail.rng import generator
from phygail.sensing.beliefs import BeliefSpec
from phygail.swarm.compiled import World
from phygail.swarm.scenario import draw_scenario
from phygail.weights import bundled

SIZES = (100, 200, 500)
DAMAGE = (0.15, 0.35, 0.55, 0.65, 0.75, 0.85, 0.95)
TRAINED = Path(__file__).parent.parent / "results" / "trained"
OTHER_SEEDS = [TRAINED / f"reach-evolved-{seed}-seed.safetensors" for seed in ("second", "third")]
LAYERS = ("edge1", "edge2", "anchor1", "anchor2")


def load(path: Path) -> tuple[np.ndarray, GateShape, BeliefSpec]:
    """Gates and belief of a weight file with its JSON."""
    about = json.loads(path.with_suffix(".json").read_text())
    parts = safetensors.numpy.load_file(path)
    vector = np.concatenate([parts[name].ravel() for layer in LAYERS for name in (layer, f"{layer}.bias")])
    return vector, GateShape(**about["shape"]), BeliefSpec(**about["belief"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policies", type=Path, nargs="*")
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--cases", type=int, default=8)
    parser.add_argument("--seed", type=int, default=4242)
    options = parser.parse_args()
    files = options.policies or [TRAINED / "phygail-averaged.safetensors", bundled("reach-evolved"), *OTHER_SEEDS]
    policies = {path.stem: load(path) for path in files}
    rows = []
    for uavs in SIZES:
        for ratio in DAMAGE:
            for case in range(options.cases):
                rng = generator(options.seed, "select", uavs, int(1000 * ratio), case)
                world = World.of(draw_scenario(uavs, ratio, rng))
                rows += [(name, uavs, ratio, case, fly_policy(world, *policy)) for name, policy in policies.items()]
    if options.rows is not None:
        with options.rows.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([("policy", "uavs", "damage", "case", "steps"), *rows])
    means = {
        name: np.array([np.mean([row[4] for row in rows if row[0] == name and row[1] == uavs]) for uavs in SIZES])
        for name in policies
    }
    first = next(iter(means.values()))
    print(f"{'policy':>24} " + " ".join(f"{f'N={uavs}':>8}" for uavs in SIZES) + f" {'ratio':>7}")
    for name, mean in means.items():
        print(f"{name:>24} " + " ".join(f"{value:>8.1f}" for value in mean) + f" {(mean / first).mean():>7.3f}")


if __name__ == "__main__":
    main()
