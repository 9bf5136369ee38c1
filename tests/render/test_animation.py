from itertools import pairwise

import imageio_ffmpeg
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from PIL import Image

from phygail.config import InputError
from phygail.methods import run_episode
from phygail.render.animation import Stage, animate_recovery, shown_steps
from phygail.render.style import FAILURE, SUCCESS
from phygail.rng import generator
from phygail.swarm.scenario import Scenario, draw_scenario, make_scenario
from phygail.swarm.simulator import Episode, fly
from phygail.swarm.world import Event, LinkModel, World

SECOND_COLOR = "#E69F00"  # of the second largest subnet


def two_apart(gap_m: float, budget_steps: int = 400) -> Scenario:
    return make_scenario("two", np.array([[0.0, 50.0], [gap_m, 50.0]]), budget_steps=budget_steps)


def hover(scenario: Scenario) -> Episode:
    return fly(scenario, lambda state: np.zeros_like(state.positions), record=True)


@pytest.fixture(scope="module")
def flights() -> dict[str, Episode]:
    scenario = draw_scenario(60, 0.5, generator(5, "picture"))
    return {name: run_episode(scenario, name, record=True) for name in ("center-fly", "sidr")}


def has_color(frame: np.ndarray, name: str) -> bool:
    return bool((frame == np.round(np.array(to_rgb(name)) * 255)).all(axis=2).any())


def test_shown_steps_by_hand():
    assert shown_steps(0, 240) == [0]
    assert shown_steps(3, 240) == [0, 1, 2, 3]
    assert shown_steps(10, 5) == [0, 3, 6, 9, 10]
    assert shown_steps(800, 2) == [0, 800]


@given(last=st.integers(0, 10_000), most=st.integers(2, 500))
def test_shown_steps_rise_from_the_damage_to_the_end_within_the_limit(last, most):
    steps = shown_steps(last, most)
    assert (steps[0], steps[-1]) == (0, last)
    assert len(steps) <= most
    assert all(a < b for a, b in pairwise(steps))


def test_gif_has_the_stated_size_frames_and_holds(flights, tmp_path):
    path = tmp_path / "a.gif"
    animate_recovery(flights, path, fps=20, max_frames=12)
    with Image.open(path) as gif:
        assert gif.size == (708, 448)  # 2 panels of 330 px and 3 gaps of 16; 30 + 330 + 46 + 42
        assert gif.n_frames == len(shown_steps(max(e.steps for e in flights.values()), 12))
        assert gif.info["loop"] == 0
        durations = []
        for k in range(gif.n_frames):
            gif.seek(k)
            durations.append(gif.info["duration"])
    assert durations == [800] + [50] * (len(durations) - 2) + [2000]
    assert path.stat().st_size < 400_000


def test_gif_shows_the_drawn_frames(flights, tmp_path):
    """Decoded frames stay within the shades of the shared palette: differences are small and rare."""
    animate_recovery(flights, tmp_path / "a.gif", max_frames=4)
    stage, steps = Stage(flights), shown_steps(max(e.steps for e in flights.values()), 4)
    with Image.open(tmp_path / "a.gif") as gif:
        for k, step in enumerate(steps):
            gif.seek(k)
            off = np.abs(np.asarray(gif.convert("RGB")).astype(int) - stage.image(step)).max(axis=2)
            assert np.percentile(off, 99) < 40


def test_mp4_is_h264_yuv420p_with_even_size_and_all_frames(flights, tmp_path):
    path = tmp_path / "a.mp4"
    animate_recovery(flights, path, fps=10, max_frames=6)
    meta = next(imageio_ffmpeg.read_frames(str(path)))
    assert meta["codec"] == "h264"
    assert meta["pix_fmt"].startswith("yuv420p")
    assert meta["size"] == (708, 448)
    shown = len(shown_steps(max(e.steps for e in flights.values()), 6))
    assert imageio_ffmpeg.count_frames_and_secs(str(path))[0] == shown + 7 + 20 - 1  # held 0.8 s and 2 s


def test_reconnection_turns_the_frame_green_and_the_swarm_into_one_color():
    stage = Stage({"sidr": run_episode(two_apart(400.0), "sidr", record=True)})
    first, late, last = stage.image(0), stage.image(139), stage.image(140)
    assert [has_color(frame, SUCCESS) for frame in (first, late, last)] == [False, False, True]
    assert [has_color(frame, SECOND_COLOR) for frame in (first, late, last)] == [True, True, False]
    assert not has_color(last, FAILURE)


def test_a_flight_that_never_reconnects_ends_in_red():
    last = Stage({"stuck": hover(two_apart(400.0, budget_steps=5))}).image(5)
    assert has_color(last, FAILURE)
    assert not has_color(last, SUCCESS)


def test_a_panel_stands_still_after_its_end_while_others_fly_on(flights):
    ends = {name: episode.steps for name, episode in flights.items()}
    assert ends["sidr"] + 2 <= ends["center-fly"]
    stage = Stage(flights)
    map_rows = slice(80, 404)  # below the titles, above the time line
    one, two = (stage.image(step)[map_rows] for step in (ends["sidr"], ends["center-fly"] - 1))
    assert np.array_equal(one[:, 354:], two[:, 354:])  # sidr is the right half
    assert not np.array_equal(one[:, :354], two[:, :354])


def test_frames_do_not_depend_on_which_were_drawn_before(flights):
    end = max(episode.steps for episode in flights.values())
    through, at_once = Stage(flights), Stage(flights)
    for step in range(0, end, 3):
        through.image(step)
    assert np.array_equal(through.image(end), at_once.image(end))


def test_an_already_connected_swarm_is_one_held_frame(tmp_path):
    flight = {"sidr": run_episode(two_apart(100.0), "sidr", record=True)}
    animate_recovery(flight, tmp_path / "a.gif")
    with Image.open(tmp_path / "a.gif") as gif:
        assert (gif.n_frames, gif.size) == (1, (460, 448))
        assert has_color(np.asarray(gif.convert("RGB")), SUCCESS)
    animate_recovery(flight, tmp_path / "a.mp4", fps=10)
    assert imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "a.mp4"))[0] == 20


def test_equal_animations_are_equal_files(flights, tmp_path):
    for name in ("a.gif", "b.gif"):
        animate_recovery(flights, tmp_path / name, max_frames=5)
    assert (tmp_path / "a.gif").read_bytes() == (tmp_path / "b.gif").read_bytes()


def test_bad_requests_are_refused_and_nothing_is_written(flights, tmp_path):
    for path, options, message in (
        ("a.avi", {}, r"use \.gif, \.mp4"),
        ("a.gif", {"fps": 0}, "fps 0"),
        ("a.gif", {"max_frames": 1}, "max_frames 1"),
    ):
        with pytest.raises(InputError, match=message):
            animate_recovery(flights, tmp_path / path, **options)
    with pytest.raises(InputError, match="no flight"):
        animate_recovery({}, tmp_path / "a.gif")
    with pytest.raises(InputError, match="record=True"):
        animate_recovery({"sidr": run_episode(two_apart(400.0), "sidr")}, tmp_path / "a.mp4")
    assert list(tmp_path.iterdir()) == []


def test_who_is_lost_in_flight_flashes_red():
    """Three in a line of links, the middle is lost at step 5: red from there on, none before."""
    line = [[0.0, 0.0], [100.0, 0.0], [200.0, 0.0], [600.0, 0.0]]
    scenario = make_scenario("line", line, world=World(events=(Event(5, (1,)),)), budget_steps=40)
    stage = Stage({"hover": hover(scenario)})
    middle = scenario.layout[1]
    (panel,) = stage._panels
    stage.image(4)
    assert panel._flash.get_xydata().shape == (0, 2)
    stage.image(5)
    np.testing.assert_array_equal(panel._flash.get_xydata(), [middle])
    stage.image(20)
    assert panel._flash.get_xydata().shape == (0, 2)
    np.testing.assert_array_equal(panel._fallen.get_xydata(), [middle])


def test_links_that_are_out_are_dashed_and_exactly_those_within_range():
    near = [[0.0, 0.0], [100.0, 0.0], [200.0, 0.0], [600.0, 0.0]]
    world = World(links=LinkModel(outage_share=0.5, outage_s=2.0), seed=3)
    stage = Stage({"hover": hover(make_scenario("near", near, world=world, budget_steps=60))})
    (panel,) = stage._panels
    out, up = [], []
    for step in range(0, 60, 5):
        stage.image(step)
        out.append(len(panel._out.get_segments()))
        up.append(len(panel._links.get_segments()))
    assert {a + b for a, b in zip(out, up, strict=True)} == {2}  # of two pairs within 120 m each is up or out
    assert 0 < sum(out) < 24


def test_the_higher_is_the_lighter_and_a_swarm_of_many_heights_has_a_palette(tmp_path):
    row = np.stack([np.arange(90) * 100.0, np.zeros(90)], axis=1)
    row[-1, 0] += 300.0
    scenario = make_scenario("row", row, world=World(altitude=tuple(np.linspace(0, 80, 90))), budget_steps=3)
    episode = hover(scenario)
    (panel,) = Stage({"hover": episode})._panels
    panel._place(episode.states[0])
    colors = panel._dots.get_facecolor()[:89, :3]
    assert (np.diff(colors.sum(axis=1)) > 0).all()
    np.testing.assert_allclose(colors[0], to_rgb("#0072B2"), atol=1e-6)  # the lowest has the color of its subnet
    animate_recovery({"hover": episode}, tmp_path / "a.gif", max_frames=3)
    assert (tmp_path / "a.gif").exists()
