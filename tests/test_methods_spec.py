"""docs/METHODS.md says what the code does: its constants are those of the code (AUDIT P9), its English American."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from phygail.methods import bridge, steering
from phygail.methods.cr_ma import ACTION, HIDDEN, HOLD_M, OBSERVATION
from phygail.methods.gcn_planners.search import DEMD_PROFILES, LEAST_GAIN_M, PROFILES, SMOOTHING_M
from phygail.methods.gcn_planners.train import SETTINGS as META
from phygail.methods.gdr_ts import LARGEST_NETWORK, ONLINE_RATE, PLANS, UPDATES
from phygail.methods.gdr_ts.policy import GAP_WEIGHT, MEAN_WEIGHT, SPLIT_COST
from phygail.methods.gdr_ts.train import SETTINGS as GDR
from phygail.methods.reach import ReachConstants
from phygail.methods.sidr import AGGREGATE_AFTER
from phygail.sensing.beliefs import MOST_MEMBERS
from phygail.weights import bundled

ROOT = Path(__file__).parent.parent
SPEC = (ROOT / "docs" / "METHODS.md").read_text(encoding="utf-8")
DEMD, CR_MA, EVOLVED = (
    json.loads(bundled(name).with_suffix(".json").read_text(encoding="utf-8"))
    for name in ("demd", "cr-ma", "reach-evolved")
)  # what their weights say of their making
REACH, FAST, GUARDED = ReachConstants(), PROFILES["fast"], DEMD_PROFILES["guarded"]


def number(value: float) -> str:
    """As METHODS writes it: 1e-3, 0.1, 3,000."""
    if 0 < value < 0.05:
        return re.sub(r"e-0", "e-", f"{value:.0e}")
    return f"{value:,g}" if value < 1e6 else str(value)


def section(heading: str) -> str:
    """The text of a section, its lines joined."""
    start = re.search(rf"^### {re.escape(heading)} ", SPEC, re.MULTILINE)
    assert start is not None, heading
    text = SPEC[start.end() :]
    return re.sub(r"\s+", " ", re.split(r"^#{2,3} ", text, maxsplit=1, flags=re.MULTILINE)[0])


CONSTANTS = {
    "3.3": [f"{AGGREGATE_AFTER:g} W flown at full speed"],
    "3.4": [
        f"h = {FAST.width}, at most {FAST.iterations} online iterations of Adam at {number(FAST.rate)}",
        f"stop after {FAST.patience} without a gain of {LEAST_GAIN_M:g} m",
        f"log-sum-exp, {SMOOTHING_M:g} m",
        f"{number(META.iterations)} iterations of four pairs on {number(META.tasks)} fresh swarms",
        f"rates {', '.join(map(number, META.rates))}",
    ],
    "3.5": [
        f"width {GUARDED.width}, pre-trained first weights ({number(DEMD['training']['iterations'])} iterations",
        f"Adam at {number(GUARDED.rate)} falling linearly, at most {number(GUARDED.iterations)} iterations",
        f"stop after {GUARDED.patience} without {100 * GUARDED.least_gain:g} % of gain",
    ],
    "3.6": [
        f"-(max + {MEAN_WEIGHT:g} mean + {GAP_WEIGHT:g} gap)/(W/2) - {SPLIT_COST:g} (N_c - 1)",
        f"Offline {GDR.updates} updates of {GDR.scenarios} scenarios x {GDR.plans} plans",
        f"Adam from {number(GDR.rate_first)} to {number(GDR.rate_last)}, log-std at {number(GDR.std_rate)}",
        f"{GDR.tasks} fresh swarms of {GDR.sizes[0]}, {GDR.sizes[1]} and {GDR.sizes[2]}",
        f"online {UPDATES} updates of {PLANS} plans at {number(ONLINE_RATE)}",
        f"More than {number(LARGEST_NETWORK)} alive fly Y",
    ],
    "3.7": [
        f"({OBSERVATION}->{HIDDEN}->{HIDDEN}->{ACTION}, ReLU, tanh",
        f"held for {HOLD_M:g} control steps",
        f"target smoothing {CR_MA['training']['smoothing']:g}",
        f"{CR_MA['training']['episodes']} episodes with noise over {CR_MA['training']['noise_episodes']}",
        f"k_link = {steering.LINK_PULL:g} v_max",
    ],
    "8.4": [
        f"if d_k < {REACH.horizon_m:g} m",
        f"exp(-(d_k - R)/{REACH.decay_m:g} m)",
        f"A = {REACH.gain:g} s^2 max(0, 1 - t v_max dt/{REACH.fade_m:g} m)",
        f"within R - {REACH.margin_m:g} m",
    ],
    "8.7": [
        f"within {EVOLVED['belief']['horizon_m']:g} m",
        f"a subnet of more than {MOST_MEMBERS} counts as {MOST_MEMBERS}",
        f"{EVOLVED['training']['population']} policies a generation on {EVOLVED['training']['worlds']} common worlds",
    ],
    "9.10": [f"|S|/{1 / bridge.CALM_SHARE:g}"],
}


@pytest.mark.parametrize(
    ("heading", "said"), [(heading, said) for heading, all_said in CONSTANTS.items() for said in all_said]
)
def test_a_constant_of_the_specification_is_that_of_the_code(heading, said):
    assert said in section(heading)


BRITISH = (
    r"\b(?:\w*(?:isation|ising|isable|our(?:ed|ing|able)?|elling|elled)|centerd|cent(?:re|red|ring)|metres?"
    r"|manoeuv\w+|behaviour\w*|neighbour\w*|colour\w*|grey)\b"
)
FINE = {"our", "ours", "four", "hour", "your", "pour", "tour", "detour", "contour", "rising", "raising", "advertising",
        "spelling", "telling", "selling", "dwelling", "spelled", "source", "supervising", "devising", "surprising",
        "comprising", "promising", "revising", "arising", "poured", "compelling"}  # fmt: skip


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/**/*.md")), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_documents_are_in_american_english(page):
    text = re.sub(r"`[^`]*`|\]\([^)]*\)", " ", page.read_text(encoding="utf-8"))
    assert not {word for word in re.findall(BRITISH, text.lower()) if word not in FINE}
