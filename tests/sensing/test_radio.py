"""sensing.radio: bytes and rounds worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from phygail.methods import METHODS
from phygail.methods.base import make_method, why_not
from phygail.sensing.radio import FLOOD, HELLO, SILENT, Talk, network_talk, spans
from phygail.sensing.views import Scope
from phygail.swarm.links import find_links

CHAIN = np.array([[0.0, 0.0], [100.0, 0.0], [200.0, 0.0], [300.0, 0.0]])


def test_a_chain_is_as_deep_as_it_is_long_and_a_loner_has_no_hops():
    found = spans(find_links(np.vstack([CHAIN, [[0.0, 900.0]]]), 120.0))
    assert found.sizes.tolist() == [4, 1]
    assert found.hops.tolist() == [3, 0]
    assert found.depth.tolist() == [3, 0]


def test_a_tree_from_the_middle_is_half_as_deep_as_the_subnet_is_wide():
    found = spans(find_links(CHAIN[[1, 0, 2, 3]], 120.0))
    assert (found.hops.tolist(), found.depth.tolist()) == ([3], [2])


def test_a_ring_of_six_is_three_hops_wide():
    angle = np.arange(6) * np.pi / 3
    found = spans(find_links(100.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1), 120.0))
    assert (found.hops.tolist(), found.depth.tolist()) == ([3], [3])


def test_bytes_of_a_step_worked_by_hand():
    assert SILENT.bytes_per_step(90, 100) == 0
    assert HELLO.bytes_per_step(90, 100) == 10
    assert FLOOD.bytes_per_step(90, 100) == 900
    assert Talk(summed_bytes=14).bytes_per_step(90, 100) == 28  # up and down
    assert Talk(roster_bits=1).bytes_per_step(90, 100) == 26  # 13 bytes hold 100 bits
    assert network_talk(3, 5, 128).bytes_per_step(90, 100) == 1044  # (5 + 2 x 128) numbers


def test_rounds_of_a_step_worked_by_hand():
    assert SILENT.rounds_per_step(7, 5) == 0
    assert HELLO.rounds_per_step(7, 5) == 1
    assert FLOOD.rounds_per_step(7, 5) == 7
    assert Talk(rounds=1, summed_bytes=8).rounds_per_step(7, 5) == 11
    assert Talk(record_bytes=10, roster_bits=1).rounds_per_step(7, 5) == 10  # both at once


def test_what_two_rules_say():
    """AUDIT P5: positions of the subnet and a belief of 4 bytes about everybody, up and down; of sidr sums only."""
    assert make_method("reach-evolved").talk.bytes_per_step(450, 500) == 450 * 10 + 2 * 4 * 500
    assert make_method("reach").talk.bytes_per_step(450, 500) == 450 * 10 + 2 * 63
    assert make_method("sidr").talk.bytes_per_step(450, 500) == 10 + 2 * (8 + 2 + 4)


@pytest.mark.parametrize("name", [name for name in METHODS if not why_not(name)])
def test_every_decentralized_method_says_what_it_says_and_no_planner_does(name):
    assert (make_method(name).talk is None) == (METHODS.get(name).scope == Scope.GLOBAL)
