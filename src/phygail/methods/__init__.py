"""The methods: a file or a folder each. Importing this room registers all of them, without importing torch."""

import importlib
import pkgutil

from phygail.methods.base import METHODS, Method, make_method
from phygail.methods.controller import run_episode

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["METHODS", "Method", "make_method", "run_episode"]
