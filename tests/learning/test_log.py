"""What a run tells."""

from phygail.learning.log import headline, shown

FLOWN = {"flown": {"episodes": 0, "success": float("nan"), "over_bound": float("nan")},
         "ppo": {"value": 0.5, "entropy": 1.25, "kl": 0.01}}  # fmt: skip


def test_an_epoch_without_a_finished_episode_shows_dashes_and_never_nan():
    """AUDIT U9: a smoke run printed nan."""
    assert headline(FLOWN) == "0 episodes  success -  over bound -  value 0.5000  entropy 1.25  kl 0.0100"
    nothing = {"success": 0.0, "over_bound": float("inf")}
    assert headline(FLOWN | {"validation": nothing}).endswith("| held out: success 0.000, over bound -")


def test_numbers_are_shown_with_their_decimals():
    assert (shown(1.23456, 2), shown(float("-inf"), 2), shown(float("nan"), 3)) == ("1.23", "-", "-")
