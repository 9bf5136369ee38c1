"""Get a shattered UAV swarm back into one network.

The names below are imported when they are first used: `import phygail` itself is light.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from phygail.config import InputError as InputError
    from phygail.config import Physics as Physics
    from phygail.experiments.grid import Grid as Grid
    from phygail.experiments.runner import compare as compare
    from phygail.methods import METHODS as METHODS
    from phygail.methods.base import GlobalMethod as GlobalMethod
    from phygail.methods.base import LocalMethod as LocalMethod
    from phygail.methods.base import SubnetMethod as SubnetMethod
    from phygail.methods.base import load_plugin as load_plugin
    from phygail.methods.base import make_method as make_method
    from phygail.methods.base import register as register
    from phygail.methods.controller import run_episode as run_episode
    from phygail.swarm.layout import load_layout as load_layout
    from phygail.swarm.scenario import Scenario as Scenario
    from phygail.swarm.scenario import draw_scenario as draw_scenario
    from phygail.swarm.scenario import load_scenarios as load_scenarios
    from phygail.swarm.scenario import make_scenario as make_scenario
    from phygail.swarm.scenario import save_scenarios as save_scenarios
    from phygail.swarm.simulator import Episode as Episode
    from phygail.swarm.tree import bound_steps as bound_steps

_HOMES = {
    "phygail.config": ("InputError", "Physics"),
    "phygail.experiments.grid": ("Grid",),
    "phygail.experiments.runner": ("compare",),
    "phygail.methods": ("METHODS", "make_method", "run_episode"),
    "phygail.methods.base": ("GlobalMethod", "LocalMethod", "SubnetMethod", "load_plugin", "register"),
    "phygail.swarm.layout": ("load_layout",),
    "phygail.swarm.scenario": ("Scenario", "draw_scenario", "load_scenarios", "make_scenario", "save_scenarios"),
    "phygail.swarm.simulator": ("Episode",),
    "phygail.swarm.tree": ("bound_steps",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *_HOME_OF]  # the strings of _HOME_OF


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'phygail' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


class _OldPlaces:
    """Finds modules of version 0.1 that have moved (`phygail._moved`); Python asks it last."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not name.startswith("phygail."):
            return None
        from phygail._moved import find_moved

        return find_moved(name)


sys.meta_path.append(_OldPlaces)
