import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex, to_rgb
from PIL import Image

from phygail.config import InputError
from phygail.methods import run_episode
from phygail.render.scene import (
    damage_words,
    draw_recovery,
    grid_shape,
    link_alpha,
    make_scene,
    outcome_words,
    recovery_figure,
)
from phygail.render.style import FAILURE, INK, METHOD_STYLES, SOFT, line_styles, subnet_colors
from phygail.rng import generator
from phygail.swarm.scenario import Scenario, draw_scenario, make_scenario
from phygail.swarm.simulator import Episode, fly


def two_apart(gap_m: float, **options: object) -> Scenario:
    return make_scenario("two", np.array([[0.0, 50.0], [gap_m, 50.0]]), **options)  # type: ignore[arg-type]


def hover(scenario: Scenario) -> Episode:
    return fly(scenario, lambda state: np.zeros_like(state.positions), record=True)


@pytest.fixture(scope="module")
def flights() -> dict[str, Episode]:
    scenario = draw_scenario(60, 0.5, generator(5, "picture"))
    return {name: run_episode(scenario, name, record=True) for name in ("center-fly", "sidr")}


@pytest.fixture(scope="module")
def picture(flights, tmp_path_factory) -> Path:
    """Of the flights, drawn alone."""
    path: Path = tmp_path_factory.mktemp("scene") / "alone.png"
    draw_recovery(flights, path)
    return path


def colors_in(path: Path) -> set[str]:
    counted = Image.open(path).convert("RGB").getcolors(maxcolors=1 << 24)
    return {"#{:02X}{:02X}{:02X}".format(*color) for _, color in counted}


def test_picture_has_one_panel_per_method_and_one_for_the_damage(flights, picture):
    assert len(recovery_figure(flights).axes) == 3
    # 3 panels of 3.3 in and 4 gaps of 0.18 in; title 0.48, note 0.38, legend 0.2 in; 200 dots per inch.
    assert Image.open(picture).size == (2124, 872)


def test_picture_shows_every_subnet_color_and_the_damaged(flights, picture):
    seen = colors_in(picture)
    scene = make_scene(flights, 3.3)
    wanted = {to_hex(color).upper() for color in scene.colors}
    assert len(wanted) > 2
    assert wanted <= seen
    assert "#A9B1BA" in seen
    assert len(seen) > 200


def test_equal_pictures_are_equal_files(flights, picture, tmp_path):
    for name in ("a.png", "a.pdf", "b.pdf"):
        draw_recovery(flights, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == picture.read_bytes()
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")


def test_threads_draw_what_a_single_thread_draws(flights, picture, tmp_path):
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda k: draw_recovery(flights, tmp_path / f"{k}.png"), range(2)))
    assert {(tmp_path / f"{k}.png").read_bytes() for k in range(2)} == {picture.read_bytes()}


def test_vector_files_are_what_their_suffix_says(flights, tmp_path):
    draw_recovery(flights, tmp_path / "a.SVG")
    assert "<svg" in (tmp_path / "a.SVG").read_text()


@pytest.mark.parametrize(
    ("panels", "shape"), [(1, (1, 1)), (2, (2, 1)), (4, (4, 1)), (5, (3, 2)), (8, (4, 2)), (9, (5, 2)), (12, (5, 3))]
)
def test_panels_fill_a_wide_grid(panels, shape):
    assert grid_shape(panels) == shape


def test_eight_methods_get_nine_panels_that_do_not_overlap(flights):
    eight = {f"method {k}": flights["sidr"] for k in range(8)}
    boxes = [axes.get_position() for axes in recovery_figure(eight).axes]
    assert len(boxes) == 9
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])


def test_titles_tell_what_was_lost_and_how_long_it_took():
    """400 m apart: 280 m must close at 2 m a step, so bound and flight are 140 steps."""
    far = run_episode(two_apart(400.0), "center-fly", record=True)
    assert damage_words(make_scene({"a": far}, 3.0)) == "2 UAVs, 0 lost: 2 subnets"
    assert outcome_words(far) == "140 steps (14.0 s), 1.0 x bound"
    assert outcome_words(hover(two_apart(400.0, budget_steps=5))) == "not reconnected in 5 steps: 2 subnets"
    assert outcome_words(hover(two_apart(100.0))) == "already connected: 0 steps"


def test_a_failure_is_written_in_red_and_a_success_is_not():
    stuck, done = hover(two_apart(400.0, budget_steps=5)), run_episode(two_apart(400.0), "sidr", record=True)
    _, failed, succeeded = recovery_figure({"stuck": stuck, "done": done}).axes
    assert [text.get_color() for text in failed.texts] == [INK, FAILURE]
    assert [text.get_color() for text in succeeded.texts] == [INK, SOFT]


def test_only_links_between_former_subnets_are_dark():
    before, after = recovery_figure({"sidr": run_episode(two_apart(400.0), "sidr", record=True)}).axes
    dark = [
        len(lines.get_segments())
        for axes in (before, after)
        for lines in axes.collections
        if isinstance(lines, LineCollection) and lines.get_zorder() == 3
    ]
    assert dark == [0, 1]


@pytest.mark.parametrize("gap_m", [100.0, 400.0])
def test_two_uavs_are_drawn_split_or_connected(gap_m, tmp_path):
    draw_recovery({"sidr": run_episode(two_apart(gap_m), "sidr", record=True)}, tmp_path / "two.png")
    seen = colors_in(tmp_path / "two.png")
    assert "#0072B2" in seen
    assert ("#E69F00" in seen) == (gap_m > 120)  # a second subnet has the second color


def test_a_layout_away_from_the_origin_lies_inside_its_own_frame():
    scenario = make_scenario("far", np.array([[-900.0, 5000.0], [-500.0, 5100.0]]))
    scene = make_scene({"a": hover(replace(scenario, budget_steps=1))}, 3.0)
    assert scene.corner == pytest.approx([-900.0, 4850.0])
    left, right, bottom, top = scene.view
    assert left < -900 < -500 < right
    assert bottom < 4850 < 5250 < top
    assert right - left == pytest.approx(top - bottom)


def test_large_swarms_get_smaller_dots_and_dense_networks_fainter_links():
    sizes = []
    for uavs in (20, 200, 2000):
        scenario = draw_scenario(uavs, 0.6, generator(1, "picture"))
        figure = recovery_figure({"hover": hover(replace(scenario, budget_steps=1))})
        dots = [c for c in figure.axes[0].collections if isinstance(c, PathCollection) and c.get_zorder() == 4]
        assert len(dots[0].get_offsets()) == len(scenario.alive)
        sizes.append(float(dots[0].get_sizes()[0]))
    assert sizes[0] > sizes[1] > sizes[2] > 0
    assert link_alpha(100, 100) > link_alpha(2_000, 100) > link_alpha(100_000, 100) > 0


def test_largest_subnets_get_the_most_distinct_colors():
    colors = subnet_colors(np.array([0, 1, 1, 1, 2, 2]))
    assert [to_hex(color).upper() for color in colors] == ["#009E73", "#0072B2", "#E69F00"]
    assert len(np.unique(subnet_colors(np.arange(1000)), axis=0)) == 18


def test_methods_keep_their_style_and_strangers_get_others():
    assert line_styles(["sidr"])["sidr"] == line_styles(["sidr", "convex", "mine"])["sidr"] == METHOD_STYLES["sidr"]
    assert list(line_styles(["mine", "sidr", "also-mine"])) == ["sidr", "also-mine", "mine"]
    looks = {(style.color, style.marker) for style in line_styles([*METHOD_STYLES, "a", "b"]).values()}
    assert len(looks) == len(METHOD_STYLES) + 2
    assert all(len(to_rgb(color)) == 3 for color, _ in looks)


@pytest.mark.parametrize("name", ["a.bmp", "a", "a.gif"])
def test_unknown_suffix_is_refused_and_nothing_is_written(flights, tmp_path, name):
    with pytest.raises(InputError, match=r"use \.png, \.pdf, \.svg"):
        draw_recovery(flights, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_unwritable_places_are_refused(flights, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder.png").mkdir()
    for path in (tmp_path / "file" / "a.png", tmp_path / "folder.png"):
        with pytest.raises(InputError, match="cannot write"):
            draw_recovery(flights, path)


def test_flights_that_cannot_be_drawn_leave_the_old_picture_alone(flights, tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(b"old")
    unrecorded = run_episode(flights["sidr"].scenario, "sidr")
    stranger = hover(two_apart(100.0))
    for bad, message in (
        ({}, "no flight"),
        ({"a": unrecorded}, "record=True"),
        ({**flights, "b": stranger}, "another"),
    ):
        with pytest.raises(InputError, match=message):
            draw_recovery(bad, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_drawing_leaves_the_global_state_of_pyplot_alone():
    code = "import sys, phygail.render.scene; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
