"""Train a tiny policy through the PettingZoo environment: a linear map, shared by all UAVs, by evolution strategies.

    python examples/pettingzoo_tiny_policy.py
"""

from __future__ import annotations

import numpy as np

from phygail.envs import recovery_v0

GENERATIONS, PAIRS, NOISE, RATE = 12, 8, 0.1, 0.15


def fly(env, weights: np.ndarray, seed: int) -> tuple[float, int, bool]:
    """(mean return per UAV, steps, success) of one episode; the same seed is the same scenario."""
    observations, infos = env.reset(seed=seed)
    total = 0.0
    while env.agents:
        actions = {agent: np.tanh(row @ weights) for agent, row in observations.items()}
        observations, rewards, _, _, infos = env.step(actions)
        total += np.mean(list(rewards.values()))
    info = next(iter(infos.values()))
    return total, info["steps"], info["success"]


def train(env, rng: np.random.Generator) -> np.ndarray:
    weights = np.zeros((*env.observation_space("uav_0").shape, 2))
    for generation in range(GENERATIONS):
        noise = NOISE * rng.standard_normal((PAIRS, *weights.shape))
        seeds = generation * PAIRS + np.arange(PAIRS)  # both signs of a direction fly the same scenario
        better = [fly(env, weights + e, int(s))[0] - fly(env, weights - e, int(s))[0] for e, s in zip(noise, seeds)]
        weights = weights + RATE * np.einsum("k,kij->ij", np.sign(better), noise)
    return weights


def evaluate(env, weights: np.ndarray) -> str:
    flights = [fly(env, weights, 10_000 + k) for k in range(20)]
    score, steps, success = np.mean(flights, axis=0)
    return f"return {score:6.1f}, {steps:5.1f} steps, reconnected {success:.0%}"


def main() -> None:
    env = recovery_v0.parallel_env(uavs=6, damage=0.34)
    weights = train(env, np.random.default_rng(0))
    print("before:", evaluate(env, np.zeros_like(weights)))
    print("after: ", evaluate(env, weights))


if __name__ == "__main__":
    main()
