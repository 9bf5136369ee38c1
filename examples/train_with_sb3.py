"""Train one policy for all UAVs with PPO of stable-baselines3, through SuperSuit. Some 15 s on one core.

pip install 'phygail[env]' supersuit stable-baselines3
python examples/train_with_sb3.py
"""

from __future__ import annotations

import numpy as np
import supersuit
from stable_baselines3 import PPO
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecEnv

from phygail.envs import recovery_v0

SWARM = {"uavs": 6, "damage": 0.34, "max_cycles": 120}
WORLDS, AGENT_STEPS, HELD_OUT = 4, 12_288, 20


def make_worlds() -> VecEnv:
    """Every UAV of every world is an environment to stable-baselines3; who is damaged observes zeros."""
    env = recovery_v0.parallel_env(**SWARM, fixed_agents=True)
    one = supersuit.pettingzoo_env_to_vec_env_v1(env)
    worlds = supersuit.concat_vec_envs_v1(one, WORLDS, num_cpus=0, base_class="stable_baselines3")
    worlds.venv.reset(seed=0)  # SuperSuit copies the first world: without seeds of their own all draw the same cases
    return worlds


def fly(model: PPO, env: recovery_v0.RecoveryEnv, seed: int) -> tuple[int, bool]:
    """(steps, success) of one episode; the policy is shared, and only the alive are there."""
    observations, infos = env.reset(seed=seed)
    while env.agents:
        commands, _ = model.predict(np.stack(list(observations.values())), deterministic=True)
        observations, _, _, _, infos = env.step(dict(zip(env.agents, commands, strict=True)))
    info = next(iter(infos.values()))
    return info["steps"], info["success"]


def main() -> None:
    set_random_seed(0)
    model = PPO("MlpPolicy", make_worlds(), n_steps=128, batch_size=512, gamma=0.98, device="cpu")
    env = recovery_v0.parallel_env(**SWARM)
    for name in ("before", "after"):
        if name == "after":
            model.learn(AGENT_STEPS)
        flights = [fly(model, env, 10_000 + k) for k in range(HELD_OUT)]  # scenarios that training never saw
        steps, success = np.mean(flights, axis=0)
        print(
            f"{name:6} {model.num_timesteps:6,} agent-steps of training: {steps:5.1f} steps, reconnected {success:.0%}"
        )


if __name__ == "__main__":
    main()
