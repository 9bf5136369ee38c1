"""How fast the world steps, as ratios taken in one run: `python benchmarks/world.py`."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import numpy as np

from phygail.methods.phygail.graph import GRAPHS
from phygail.methods.phygail.graph_batch import observe
from phygail.rng import generator
from phygail.swarm.batch import BatchState, BatchWorld, initial_batch, step_batch
from phygail.swarm.scenario import Scenario, draw_scenario
from phygail.swarm.simulator import Meter, SwarmState, initial_state, project_speed, step

WORLDS = 64
REPEATS = 200


def median_s(work: Callable[[], object], repeats: int) -> float:
    """Median processor time of `work` after a warm-up: wall time would charge long calls for what else is running."""
    times = []
    for _ in range(repeats + max(3, repeats // 10)):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return float(np.median(times[-repeats:]))


def scenarios(uavs: int, ratio: float, count: int) -> list[Scenario]:
    return [draw_scenario(uavs, ratio, generator(0, "benchmark", uavs, k)) for k in range(count)]


def single_us_per_uav(uavs: int, repeats: int) -> float:
    """Microseconds per alive UAV of one step of one world with links, subnets and metrics."""
    state = initial_state(scenarios(uavs, 0.25, 1)[0])
    meter = Meter(state)
    commands = generator(1, "commands", uavs).uniform(-7.0, 7.0, state.positions.shape)
    return median_s(lambda: meter.see(step(state, commands)), repeats) / len(state.positions) * 1e6


def world_ratio(uavs: int, repeats: int) -> float:
    """Time of a plain step over that of one that knows no other worlds, runs interleaved, links included."""
    state = initial_state(scenarios(uavs, 0.5, 1)[0])
    commands = generator(1, "commands", uavs).uniform(-7.0, 7.0, state.positions.shape)
    physics = state.scenario.physics

    def plain() -> None:
        executed = project_speed(commands, physics.speed_mps)
        SwarmState(state.scenario, state.positions + executed * physics.step_s, executed, state.step + 1).links  # noqa: B018

    steps: list[Callable[[], object]] = [lambda: step(state, commands).links, plain]
    rounds = [[median_s(work, repeats) for work in steps] for _ in range(20)]
    return float(np.median([today / before for today, before in rounds]))


def batch_rate(batch: BatchState, *, safety: bool = False) -> float:
    """World-steps per second of a batch, links and subnets included."""
    commands = generator(1, "commands", batch.rows).uniform(-7.0, 7.0, batch.positions.shape)
    seconds = median_s(lambda: step_batch(batch, commands, safety=safety).count, REPEATS)
    return len(batch.scenarios) / seconds


def reset_rate(pool: list[Scenario]) -> float:
    """The same for worlds that fly to the center and start anew with the next of `pool` when they are done."""
    world = BatchWorld(itertools.cycle(pool), WORLDS, least_rows=max(len(s.spots) for s in pool))

    def fly_to_center() -> None:
        away = world.state.cases.center.T[:, None] - world.state.positions
        world.step(away * 1e3)

    return WORLDS / median_s(fly_to_center, 2 * REPEATS)


def seen_rate(batch: BatchState) -> float:
    """World-steps per second with the paper's observation graph of every UAV built after every step."""
    commands = generator(1, "commands", batch.rows).uniform(-7.0, 7.0, batch.positions.shape)
    seconds = median_s(lambda: observe(step_batch(batch, commands), GRAPHS.get("paper")), REPEATS)
    return len(batch.scenarios) / seconds


def main() -> None:
    small, large = single_us_per_uav(500, REPEATS), single_us_per_uav(10_000, 25)
    twenty, survivors = initial_batch(scenarios(20, 0.1, WORLDS), 20), initial_batch(scenarios(200, 0.9, WORLDS))
    rate, rate_of_survivors = batch_rate(twenty), batch_rate(survivors)
    print(f"one world, N=500: {small:.2f} us per alive UAV and step")
    print(f"one world, N=10000: {large:.2f} us per alive UAV and step")
    print(f"cost per alive UAV, N=10000 over N=500: {large / small:.2f} (limit: at most 1.5)")
    ratios = ", ".join(f"{world_ratio(uavs, 60):.3f}" for uavs in (100, 200))
    print(f"plain step over one that knows no other worlds, N=100, 200: {ratios} (limit: at most 1.03)")
    print(f"{WORLDS} worlds, N=20: {rate:,.0f} world-steps/s (limit: at least 100,000)")
    print(f"{WORLDS} worlds, N=200 with 20 alive: {rate_of_survivors:,.0f} world-steps/s")
    print(f"cost of N=200 with 20 alive over N=20: {rate / rate_of_survivors:.2f} (limit: at most 1.5)")
    print(f"{WORLDS} worlds, N=20, safety on: {batch_rate(twenty, safety=True):,.0f} world-steps/s (no limit)")
    print(f"{WORLDS} worlds, N=20, with resets: {reset_rate(list(twenty.scenarios)):,.0f} world-steps/s (no limit)")
    for ratio in (0.1, 0.5):
        seen = seen_rate(initial_batch(scenarios(20, ratio, WORLDS), 20))
        print(f"{WORLDS} worlds, N=20, damage {ratio:g}, step + perception: {seen:,.0f} world-steps/s (limit: 20,000)")


if __name__ == "__main__":
    main()
