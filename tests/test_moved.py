"""Old places of version 0.1.0: every one leads to the new one, with a warning, and to the very same object."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path

import pytest

import phygail
from phygail._moved import MODULES, NAMES, ROOMS

LIGHT = [old for old in MODULES if not old.startswith(("training", "models", "experts", "envs", "cli"))]


@pytest.mark.parametrize("old", LIGHT)
def test_an_old_module_offers_what_the_new_one_has(old):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        new = importlib.import_module(f"phygail.{MODULES[old]}")
        names = [name for name in vars(new) if not name.startswith("_")]
        shim = importlib.import_module(f"phygail.{old}")
        assert names
        elsewhere = {name for module, name in NAMES if module == old}
        assert all(getattr(shim, name) is getattr(new, name) for name in names if name not in elsewhere)


@pytest.mark.parametrize(("old", "name"), [(old, name) for old, name in NAMES if old in LIGHT])
def test_a_name_that_left_its_module_is_found(old, name):
    new, new_name = NAMES[old, name]
    with pytest.warns(DeprecationWarning, match=f"moved to phygail.{new}"):
        found = getattr(importlib.import_module(f"phygail.{old}"), name)
    assert found is getattr(importlib.import_module(f"phygail.{new}"), new_name)


def test_the_warning_names_the_line_of_the_user(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("from phygail.perception.view import SubnetView\n")
    with pytest.warns(DeprecationWarning, match="moved to phygail.sensing.views") as caught:
        exec(compile(file.read_text(), str(file), "exec"), {})
    assert caught[0].filename == str(file)


def test_what_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("phygail.evaluation.nonsense")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("phygail.nonsense")
    with pytest.raises(ImportError):
        exec("from phygail.evaluation.grid import nonsense", {})


def test_no_old_place_is_a_new_one():
    package = Path(phygail.__file__).parent
    assert not [old for old in MODULES if package.joinpath(*old.split(".")).with_suffix(".py").exists()]
    assert not [room for room in ROOMS if (package / room / "__init__.py").exists()]
