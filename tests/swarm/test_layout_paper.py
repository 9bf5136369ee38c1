"""The paper's layouts travel with the package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from phygail.config import CONTACT_M, InputError
from phygail.swarm.layout import PAPER_LAYOUTS, PAPER_WIDTHS_M, find_layout, save_layout
from phygail.swarm.links import find_links


@pytest.mark.parametrize("name", PAPER_LAYOUTS)
def test_every_paper_layout_is_one_network_inside_its_map(name: str) -> None:
    ground = find_layout(name)
    assert len(ground.positions) == int(name.removeprefix("paper-"))
    assert ground.width_m is not None
    assert (ground.positions >= 0).all()
    assert (ground.positions <= ground.width_m).all()
    assert find_links(ground.positions, 120.0).connected


def test_paper_layouts_have_the_paper_widths_and_the_close_pairs_of_finding_f5() -> None:
    close = {}
    for uavs in PAPER_WIDTHS_M:
        ground = find_layout(f"paper-{uavs}")
        assert ground.width_m == PAPER_WIDTHS_M[uavs]
        close[uavs] = len(find_links(ground.positions, CONTACT_M).contacts)
    assert close == {20: 0, 50: 0, 100: 1, 200: 9, 500: 13}


def test_a_file_is_read_and_named_after_its_stem(tmp_path: Path) -> None:
    save_layout(tmp_path / "mine.csv", np.array([[0.0, 0.0], [50.0, 0.5]]))
    ground = find_layout(tmp_path / "mine.csv")
    assert (ground.name, ground.width_m) == ("mine", None)
    np.testing.assert_array_equal(ground.positions, [[0.0, 0.0], [50.0, 0.5]])


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="paper-20, paper-50"):
        find_layout("paper-30")
