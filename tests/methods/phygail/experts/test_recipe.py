import numpy as np
import pytest

from phygail.config import InputError
from phygail.methods.phygail.experts.recipe import Recipe


def test_a_range_scale_shortens_ranges_and_changes_nothing_else():
    """Ranges are log-uniform from R / scale to R; layout and damage are those of the recipe without it."""
    plain, scaled = (Recipe("toy", ("sidr",), damage=(0.5,), cases=200, range_scale=scale) for scale in (1.0, 5.0))
    ranges = []
    for number in range(200):
        before, after = plain.scenario(number), scaled.scenario(number)
        assert np.array_equal(before.layout, after.layout)
        assert np.array_equal(before.damaged, after.damaged)
        assert before.physics.range_m == 120.0
        ranges.append(after.physics.range_m)
    assert 24.0 <= min(ranges) < 40.0
    assert 90.0 < max(ranges) <= 120.0
    assert np.median(ranges) == pytest.approx(120.0 / np.sqrt(5.0), rel=0.2)


def test_a_range_that_grows_is_refused():
    with pytest.raises(InputError, match="range scale"):
        Recipe("toy", ("sidr",), range_scale=0.5)
