import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phygail.groups import group_means, group_sums


def test_sums_and_means_by_hand():
    group, vectors = np.array([2, 0, 2]), np.array([[1.0, 2.0], [5.0, 5.0], [3.0, -2.0]])
    assert group_sums(group, vectors, 4).tolist() == [[5, 5], [0, 0], [4, 0], [0, 0]]
    assert group_means(group, vectors, 4).tolist() == [[5, 5], [0, 0], [2, 0], [0, 0]]


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), max_size=30))
def test_every_group_alone_has_the_same_sum_and_mean(items):
    group = np.array([item[0] for item in items], dtype=np.intp)
    vectors = np.array([item[1:] for item in items]).reshape(-1, 2)
    sums, means = group_sums(group, vectors, 5), group_means(group, vectors, 5)
    for label in range(5):
        mine = vectors[group == label]
        assert sums[label] == pytest.approx(mine.sum(axis=0), abs=1e-9)
        assert means[label] == pytest.approx(mine.mean(axis=0) if len(mine) else [0.0, 0.0], abs=1e-9)
