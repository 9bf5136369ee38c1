"""Every experiment by name: those of the paper, then those beyond it."""

from __future__ import annotations

from phygail.evaluation.beyond import BEYOND
from phygail.evaluation.experiment import Experiment
from phygail.evaluation.paper import PAPER
from phygail.registry import Registry

EXPERIMENTS: Registry[Experiment] = Registry("experiment")
for _part in (PAPER, BEYOND):
    for _name in _part:
        EXPERIMENTS.add(_name, _part.get(_name))
