"""Draw the picture at the top of the README: a shattered swarm of 200, and how several methods reconnect it.

    python examples/draw_recovery.py docs/images/recovery.png [center-fly,sidr,reach]

The suffix decides: .png, .pdf and .svg show before and after; .gif and .mp4 show the flights side by side.
"""

from __future__ import annotations

import sys
from pathlib import Path

from phygail.evaluation.figures import animate_recovery, draw_recovery
from phygail.methods import run_episode
from phygail.rng import generator
from phygail.swarm.scenario import draw_scenario

SEED = 8  # picked by eye from seeds 0 to 39 for its many subnets: an illustration, not a result


def main(path: Path, methods: list[str]) -> None:
    scenario = draw_scenario(200, 0.5, generator(SEED, "picture"))
    flights = {name: run_episode(scenario, name, record=True) for name in methods}
    draw = animate_recovery if path.suffix in (".gif", ".mp4") else draw_recovery
    draw(flights, path)
    print(f"wrote {path}")


if __name__ == "__main__":
    main(
        Path(sys.argv[1] if len(sys.argv) > 1 else "recovery.png"),
        (sys.argv[2] if len(sys.argv) > 2 else "center-fly,sidr,reach").split(","),
    )
