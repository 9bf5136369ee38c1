"""The database file: what is wrong with one is said in one line."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from phygail.config import InputError
from phygail.methods.phygail.experts.build import build_experts
from phygail.methods.phygail.experts.database import concatenate, pack, write_archive
from phygail.methods.phygail.experts.dataset import ExpertSet
from phygail.methods.phygail.experts.recipe import Recipe, demonstrate

h5py = pytest.importorskip("h5py")

RECIPE = Recipe("test", ("center-fly",), missing=("cr-ma",), damage=(0.5,), cases=2, seed=400_001)


@pytest.fixture(scope="module")
def archive():
    return concatenate([pack(demonstrate(RECIPE, number)) for number in range(2)])


@pytest.fixture
def path(archive, tmp_path):
    path = tmp_path / "small.h5"
    write_archive(path, archive, RECIPE.config(), {"0.5": 1}, "phygail experts --out small.h5")
    return path


def test_the_file_says_what_made_it(path):
    with h5py.File(path) as file:
        about = dict(file.attrs)
    assert (about["format"], about["format_version"]) == ("phygail-experts", 1)
    assert (about["seed"], about["pool"], about["command"]) == (400_001, "test", "phygail experts --out small.h5")
    assert {"package_version", "content_sha256"} <= set(about)
    experts = ExpertSet.open(path)
    assert experts.config == RECIPE.config()
    assert experts.config["missing"] == ["cr-ma"]
    assert experts.about["dropped"] == {"0.5": 1}


def test_flat_arrays_have_their_offsets_beside_them(path, archive):
    with h5py.File(path) as file:
        first, last = file["positions_start"][1:3]
        n = 20 - file["lost"][1]
        flight = file["positions"][first:last].reshape(-1, n, 2)
        layout = file["layout"][file["layout_start"][1] : file["layout_start"][2]]
        damaged = file["damaged"][file["damaged_start"][1] : file["damaged_start"][2]]
    np.testing.assert_array_equal(flight, archive.trajectory(1)[0])
    np.testing.assert_array_equal(flight[0], np.delete(layout, damaged, axis=0))


def test_equal_content_is_equal_bytes(path, archive, tmp_path):
    other = tmp_path / "other.h5"
    write_archive(other, archive, RECIPE.config(), {"0.5": 1}, "phygail experts --out small.h5")
    assert other.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_file_is_refused(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=r"small\.h5 is damaged"):
        ExpertSet.open(path)


def test_a_changed_number_is_noticed(path):
    with h5py.File(path, "r+") as file:
        file["velocities"][3, 0] += 0.5
    with pytest.raises(InputError, match="content is not what was written"):
        ExpertSet.open(path)


@pytest.mark.parametrize("damage", ["positions", "layout_start"])
def test_a_missing_array_is_noticed(path, damage):
    with h5py.File(path, "r+") as file:
        del file[damage]
    with pytest.raises(InputError, match="is damaged"):
        ExpertSet.open(path)


def test_foreign_files_and_other_versions_are_refused(path, tmp_path):
    (tmp_path / "text.h5").write_text("x_m,y_m\n1,2\n")
    with pytest.raises(InputError, match=r"text\.h5 is damaged or no expert database"):
        ExpertSet.open(tmp_path / "text.h5")
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file["numbers"] = [1, 2]
    with pytest.raises(InputError, match=r"foreign\.h5 is no expert database"):
        ExpertSet.open(tmp_path / "foreign.h5")
    with h5py.File(path, "r+") as file:
        file.attrs["format_version"] = 2
    with pytest.raises(InputError, match="format version 2, this version reads 1"):
        ExpertSet.open(path)
    with pytest.raises(InputError, match="there is no such file"):
        ExpertSet.open(tmp_path / "none.h5")


def test_without_h5py_the_extra_is_named(path, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "h5py", None)
    for use in (lambda: ExpertSet.open(path), lambda: build_experts(RECIPE, tmp_path / "new.h5")):
        with pytest.raises(InputError, match=r"need h5py: pip install 'phygail\[learn\]'"):
            use()
    assert not (tmp_path / "new.h5.parts").exists()
