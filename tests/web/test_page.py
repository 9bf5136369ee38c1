"""The page as a user meets it, in chromium, from file://."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]


def test_a_new_user_sees_the_swarm_struck_and_one_again(visit):
    page = visit.open("n=100&lost=0.5&seed=7&speed=8")
    page.wait_for_selector("text=/One network again: /")
    assert page.locator(".lane.won").count() == 1
    steps = page.locator('#table tr[data-method="sidr"] td').nth(1).inner_text()
    assert int(steps) > 0
