import numpy as np
import pytest

from phygail.learning.worlds import FLYING, MIXES, PATCH_ROSTER, PATCH_SIZES, draw_worlds
from phygail.swarm.layout import width_for
from phygail.swarm.links import find_links


@pytest.fixture(scope="module")
def worlds():
    return draw_worlds(25, 3, "test")


def test_at_most_twenty_fly_and_all_are_split(worlds):
    assert len(worlds) == 25
    for world in worlds:
        assert 2 <= len(world.alive) <= FLYING == 20
        assert find_links(world.spots, world.physics.range_m).count > 1


def test_equal_keys_give_equal_worlds_and_others_do_not(worlds):
    again, other = draw_worlds(6, 3, "test"), draw_worlds(6, 3, "other")
    for a, b in zip(again, worlds, strict=False):
        assert np.array_equal(a.layout, b.layout)
        assert np.array_equal(a.damaged, b.damaged)
    assert any(
        a.layout.shape != b.layout.shape or (a.layout != b.layout).any() for a, b in zip(again, other, strict=True)
    )


def test_every_kind_occurs_with_its_roster_and_map(worlds):
    for mix in MIXES.values():
        assert mix.whole + mix.survivors + mix.patch == pytest.approx(1.0)
    sizes = MIXES["near"].sizes
    widths = {size: width_for(size) for size in (20, *sizes, *PATCH_SIZES)}
    found = set()
    for world in worlds:
        if world.uavs == 20 and world.width_m == widths[20]:
            found.add("whole")
        elif any(world.uavs == size and world.width_m == widths[size] for size in sizes):
            found.add("survivors")
        else:
            assert PATCH_ROSTER[0] <= world.uavs <= PATCH_ROSTER[1]
            assert world.width_m in {widths[size] for size in PATCH_SIZES}
            found.add("patch")
    assert found == {"whole", "survivors", "patch"}


def test_far_worlds_are_cut_out_of_larger_swarms():
    assert any(world.width_m == width_for(400) for world in draw_worlds(25, 3, "test", mix="far"))
