"""A method of your own in one file: `phygail compare --plugin examples/own_method.py --methods spiral,sidr ...`."""

import numpy as np

from phygail.methods.base import SubnetMethod, register
from phygail.methods.steering import go
from phygail.sensing.views import SubnetView


@register
class Spiral(SubnetMethod):
    """Every subnet spirals toward the center: a block flight, turned by 30 degrees."""

    name = "spiral"
    summary = "every subnet spirals toward the center"

    def act(self, view: SubnetView) -> np.ndarray:
        middle = view.positions.mean(axis=0, keepdims=True)
        toward = go(middle, view.mission.center, view.mission.physics)
        turn = np.array([[np.cos(0.52), np.sin(0.52)], [-np.sin(0.52), np.cos(0.52)]])
        return np.repeat(toward @ turn, len(view.members), axis=0)


if __name__ == "__main__":
    from phygail import draw_scenario, run_episode
    from phygail.rng import generator

    scenario = draw_scenario(50, 0.5, generator(3, "example"))
    for method in ("spiral", "sidr"):
        print(f"{method}: {run_episode(scenario, method).scored_steps} steps")
