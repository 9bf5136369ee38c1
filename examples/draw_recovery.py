"""Draw how several methods reconnect one swarm: a picture, or a race on one clock (.gif, .mp4).

python examples/draw_recovery.py [recovery.png] [sidr,reach]
"""

from __future__ import annotations

import sys
from pathlib import Path

from phygail import draw_scenario, run_episode
from phygail.render.animation import animate_recovery
from phygail.render.scene import draw_recovery
from phygail.rng import generator


def main(path: Path, methods: list[str]) -> None:
    scenario = draw_scenario(200, 0.5, generator(8, "picture"))
    flights = {name: run_episode(scenario, name, record=True) for name in methods}
    draw = animate_recovery if path.suffix in (".gif", ".mp4") else draw_recovery
    draw(flights, path)
    print(f"{path}: " + ", ".join(f"{name} {flight.steps} steps" for name, flight in flights.items()))


if __name__ == "__main__":
    words = dict(enumerate(sys.argv))
    main(Path(words.get(1, "recovery.png")), words.get(2, "sidr,reach").split(","))
