"""A layout of your own, an area strike on it, and the scenario saved for replay."""

import tempfile
from pathlib import Path

import numpy as np

from phygail import load_scenarios, make_scenario, run_episode, save_scenarios
from phygail.swarm.layout import strike_damage

x, y = np.meshgrid(np.arange(0, 900, 100.0), np.arange(0, 300, 100.0))
layout = np.stack([x.ravel(), y.ravel()], axis=1)  # a 9 x 3 grid of UAVs, 100 m apart
damaged = strike_damage(layout, x_m=400, y_m=100, radius_m=160)
scenario = make_scenario("strike", layout, damaged, center=[400.0, 100.0])

with tempfile.TemporaryDirectory() as folder:
    save_scenarios(Path(folder) / "strike.json", [scenario])
    (again,) = load_scenarios(Path(folder) / "strike.json")

episode = run_episode(again, "reach", record=True)
print(f"{len(damaged)} of {len(layout)} lost; one network again after {episode.steps} steps")
print(f"the first UAV flew from {episode.states[0].positions[0]} to {episode.states[-1].positions[0].round(1)}")
