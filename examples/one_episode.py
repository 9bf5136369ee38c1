"""Fly one method on one random scenario and read what happened."""

from phygail import draw_scenario, run_episode
from phygail.rng import generator
from phygail.swarm.tree import bound_steps

scenario = draw_scenario(100, 0.5, generator(1, "example"))
bound = bound_steps(scenario.spots, scenario.physics)
print(f"{scenario.uavs} UAVs, {len(scenario.damaged)} damaged; no method needs fewer than {bound} steps")

for name in ("center-fly", "sidr", "reach", "convex"):
    episode = run_episode(scenario, name, safety=True)
    print(f"{name:10s} {episode.steps:4d} steps, {episode.metrics.contact_events_per_uav:.2f} contacts per UAV")
