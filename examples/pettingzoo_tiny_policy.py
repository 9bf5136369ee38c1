"""Train a tiny policy through the PettingZoo environment: a linear map, shared by all UAVs, by evolution strategies.

python examples/pettingzoo_tiny_policy.py
"""

from __future__ import annotations

import numpy as np

from phygail.envs import recovery_v0

GENERATIONS, PAIRS, NOISE, RATE, HELD_OUT = 8, 6, 0.2, 0.25, 10


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
    """Step toward the better sign of random directions; both signs of a direction fly the same scenario."""
    weights = np.zeros((*env.observation_space("uav_0").shape, 2))
    for generation in range(GENERATIONS):
        noise = NOISE * rng.standard_normal((PAIRS, *weights.shape))
        seeds = range(generation * PAIRS, (generation + 1) * PAIRS)
        gains = [fly(env, weights + e, s)[0] - fly(env, weights - e, s)[0] for e, s in zip(noise, seeds, strict=True)]
        weights = weights + RATE * np.einsum("k,kij->ij", np.sign(gains), noise)
    return weights


def main() -> None:
    env = recovery_v0.parallel_env(uavs=6, damage=0.34)
    weights = train(env, np.random.default_rng(0))
    for name, policy in (("before", np.zeros_like(weights)), ("after", weights)):
        flights = [fly(env, policy, 10_000 + k) for k in range(HELD_OUT)]  # scenarios that training never saw
        score, steps, success = np.mean(flights, axis=0)
        print(f"{name:6} training: return {score:5.1f}, {steps:5.1f} steps, reconnected {success:.0%}")


if __name__ == "__main__":
    main()
