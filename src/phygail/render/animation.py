"""Animations: several methods side by side on one clock, each panel stopping when its network is one again.

The still parts are drawn once and kept; each image adds only what moves. A panel that has come to its end becomes one
of the still parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from PIL import Image

from phygail.config import InputError, require_extra
from phygail.render.scene import (
    LOWER_PT,
    Scene,
    add_dots,
    add_outages,
    add_title,
    damage_words,
    grid_shape,
    link_alpha,
    link_segments,
    make_scene,
    outages,
    places_of_all,
    plural,
    prepare_panel,
    rows_at_start,
    shaded,
    title_line,
)
from phygail.render.style import (
    FAILURE,
    FAINT,
    INK,
    LOST,
    MAP,
    SOFT,
    STAR,
    SUCCESS,
    add_panel,
    checked_draft,
    new_figure,
    subnet_colors,
)
from phygail.swarm.simulator import Episode, SwarmState, initial_state
from phygail.swarm.tree import bound_for

ANIMATION_SUFFIXES = (".gif", ".mp4")
DPI = 100
NARROWEST_PX = 460  # room for the text of a single panel
PANEL_PX, GAP_PX, TITLE_PX, HEAD_PX, FOOT_PX = 330, 16, 46, 30, 42
FIRST_HOLD_S, LAST_HOLD_S = 0.8, 2.0  # seconds for which the damage and the outcome stay
TAIL_SHARE = 0.05  # of the map's width, at full speed: length of the tail that shows where a UAV comes from
TAIL_PIECES = 5
FLASH_STEPS = 6  # during which a circle marks a UAV that was lost in flight
GIF_SHADES = (1.0, 0.75, 0.5, 0.25)  # of each color on white: enough for smooth edges


def animate_recovery(flights: Mapping[str, Episode], path: Path, *, fps: int = 15, max_frames: int = 240) -> None:
    """Show several methods on one scenario side by side, as GIF or MP4.

    UAVs wear the color of the largest subnet that theirs has joined, so the swarm visibly melts into one color.

    Args:
        flights: Recorded episodes of one scenario by name of the method.
        path: .gif or .mp4; written whole or not at all.
        fps: Images per second.
        max_frames: Long flights show every k-th step so that there are no more images than this.
    """
    if not 1 <= fps <= 50:
        raise InputError(f"fps {fps}: choose from 1 to 50")
    if max_frames < 2:
        raise InputError(f"max_frames {max_frames}: at least 2 are needed, the damage and the outcome")
    with checked_draft(path, ANIMATION_SUFFIXES) as draft:
        steps = shown_steps(max((episode.steps for episode in flights.values()), default=0), max_frames)
        write = _write_gif if draft.suffix.lower() == ".gif" else _write_mp4
        write(flights, steps, draft, fps)


def shown_steps(last: int, max_frames: int) -> list[int]:
    """The steps to show: from 0 evenly to `last`, both included, at most `max_frames`."""
    stride = max(1, -(-last // (max_frames - 1)))
    return [*range(0, last, stride), last]


class Stage:
    """The figure of an animation; its images are taken in the order of time."""

    def __init__(self, flights: Mapping[str, Episode]) -> None:
        self.scene = make_scene(flights, PANEL_PX / DPI)
        columns, rows = grid_shape(len(flights))
        content = columns * (PANEL_PX + GAP_PX) - GAP_PX
        width, height = max(content + 2 * GAP_PX, NARROWEST_PX), HEAD_PX + rows * (PANEL_PX + TITLE_PX) + FOOT_PX
        width, height = width + width % 2, height + height % 2  # H.264 stores colors for blocks of two by two pixels
        # A hundredth of a pixel is added, so that rounding does not remove a pixel.
        figure = new_figure((width + 0.01) / DPI, (height + 0.01) / DPI, DPI)
        self._panels = []
        for k, (name, episode) in enumerate(flights.items()):
            left = (width - content) / 2 + (k % columns) * (PANEL_PX + GAP_PX)
            bottom = height - HEAD_PX - (k // columns + 1) * (PANEL_PX + TITLE_PX)
            axes = add_panel(figure, left / DPI, bottom / DPI, PANEL_PX / DPI, PANEL_PX / DPI)
            self._panels.append(Panel(axes, self.scene, name, episode))
        backdrop = add_panel(figure, GAP_PX / DPI, 0, (width - 2 * GAP_PX) / DPI, height / DPI)
        self._clock = Clock(backdrop, self.scene, max(episode.steps for episode in flights.values()))
        self._bbox = figure.bbox
        self._canvas = cast(Any, figure.canvas)  # matplotlib leaves the methods of its canvas without types
        self._canvas.draw()
        self._still = self._canvas.copy_from_bbox(self._bbox)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels, both even."""
        return cast(tuple[int, int], self._canvas.get_width_height())

    def image(self, step: int) -> np.ndarray:
        """(height, width, 3) uint8, the image at `step`; steps must not decrease from call to call."""
        self._canvas.restore_region(self._still)
        ending = [panel for panel in self._panels if panel.running and step >= panel.last]
        for panel in ending:
            panel.draw(step)
        if ending:
            self._still = self._canvas.copy_from_bbox(self._bbox)
        for panel in self._panels:
            if panel.running:
                panel.draw(step)
        self._clock.draw(step)
        return np.asarray(self._canvas.buffer_rgba())[:, :, :3].copy()


class Panel:
    """One method's map."""

    def __init__(self, axes: Axes, scene: Scene, name: str, episode: Episode) -> None:
        self._axes, self._scene, self._episode = axes, scene, episode
        self.last = len(episode.states) - 1
        self.running = True
        self._tail_steps = TAIL_SHARE * scene.scenario.width_m / scene.scenario.physics.stride_m
        self._star = prepare_panel(axes, scene)
        add_title(axes, name, "")
        self._tails = LineCollection([], linewidths=0.9 * scene.line_pt, alpha=0.45, zorder=2)
        self._links = LineCollection([], linewidths=scene.line_pt, zorder=3)
        for lines in (self._tails, self._links):
            axes.add_collection(lines, autolim=False)
        begin = initial_state(scene.scenario)
        self._dots, self._out = add_dots(axes, scene, begin), add_outages(axes, scene, begin)
        cross = 0.8 * scene.dot_pt
        self._fallen = Line2D([], [], color=FAILURE, marker="x", markersize=cross, linestyle="none", zorder=4)
        self._flash = Line2D(
            [], [], marker="o", markersize=4 * scene.dot_pt, markerfacecolor="none", markeredgecolor=FAILURE,
            markeredgewidth=1.5, linestyle="none", zorder=5,
        )  # fmt: skip
        for marks in (self._fallen, self._flash):
            axes.add_line(marks)
        self._status = title_line(axes, "", LOWER_PT, 8.8, SOFT)
        for artist in self._moving:
            artist.set_animated(True)
        # The rank of a subnet by size, 0 the largest, and its color; merged subnets take the best rank among them.
        sizes = np.bincount(scene.subnet)
        rank = np.empty(len(sizes), dtype=np.intp)
        rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
        self._rank = rank[scene.subnet]
        self._colors = np.empty((len(sizes), 3))
        self._colors[rank] = subnet_colors(scene.subnet)

    @property
    def _moving(self) -> list[Artist]:
        return [self._out, self._tails, self._links, self._fallen, self._dots, self._flash, self._star, self._status]

    def draw(self, step: int) -> None:
        """Draw what moves at `step`; at the end of the flight the panel is marked and stops."""
        state = self._episode.states[min(step, self.last)]
        self._place(state)
        self._status.set_text(plural(state.links.count, "subnet"))
        if step >= self.last:
            self.running = False
            self._mark_end(state)
        for artist in self._moving:
            self._axes.draw_artist(artist)

    def _place(self, state: SwarmState) -> None:
        subnet, positions, rows = state.links.subnet, state.positions, rows_at_start(state)
        best = np.full(state.links.count, len(self._colors))
        np.minimum.at(best, subnet, self._rank[rows])
        colors = shaded(self._colors[best[subnet]], state)
        if state.flight is not None:
            self._out.set_segments(outages(state))
            died = state.flight.died
            self._fallen.set_data(*state.flight.places[died > 0].T)
            self._flash.set_data(*state.flight.places[(died > 0) & (died > state.step - FLASH_STEPS)].T)
        self._dots.set_offsets(positions)
        self._dots.set_facecolor(list(map(tuple, colors)))
        segments, pairs = link_segments(state.links, positions)
        self._links.set_segments(list(segments))
        self._links.set_color(list(map(tuple, colors[pairs[:, 0]])))
        self._links.set_alpha(link_alpha(len(state.links.pairs), len(positions)))
        times = np.linspace(max(0, state.step - self._tail_steps), state.step, TAIL_PIECES + 1).round().astype(int)
        self._tails.set_segments(list(np.stack([places_of_all(self._episode.states[t])[rows] for t in times], axis=1)))
        self._tails.set_color(list(map(tuple, colors)))

    def _mark_end(self, state: SwarmState) -> None:
        seconds = self._episode.steps * self._scene.scenario.physics.step_s
        done = self._episode.terminated
        color = SUCCESS if done else FAILURE
        left = plural(state.links.count, "subnet")
        self._status.set(
            text=f"reconnected at {seconds:.1f} s" if done else f"not reconnected in {seconds:.1f} s: {left}",
            color=color, fontweight="bold",
        )  # fmt: skip
        width = self._scene.scenario.width_m
        corner = tuple(self._scene.corner)
        border = Rectangle(corner, width, width, fill=False, edgecolor=color, linewidth=2.2, zorder=6)
        border.set_animated(True)
        self._axes.add_patch(border)
        self._axes.draw_artist(border)


class Clock:
    """The losses and the time as text; below them a time line with the bound."""

    def __init__(self, axes: Axes, scene: Scene, last: int) -> None:
        self._axes, self._last, self._step_s = axes, max(1, last), scene.scenario.physics.step_s
        height = axes.bbox.height  # px: the axes count in pixels upward, and from 0 to 1 to the right
        axes.set(xlim=(0, 1), ylim=(0, height))
        axes.axis("off")
        axes.patch.set_visible(False)
        axes.text(0, height - 20, damage_words(scene), fontsize=9.5, color=INK, va="center")
        self._time = axes.text(1, height - 20, "", fontsize=12, fontweight="bold", color=INK, ha="right", va="center")
        axes.add_patch(Rectangle((0, 27), 1, 4, color=FAINT, linewidth=0))
        self._bar = Rectangle((0, 27), 0, 4, color=SOFT, linewidth=0, zorder=2)
        axes.add_patch(self._bar)
        for event in {event.step for event in scene.scenario.world.events if event.step <= self._last}:
            axes.plot([event / self._last] * 2, [24, 34], color=FAILURE, linewidth=1.0, zorder=3)
        bound = bound_for(scene.scenario) or 0
        if 0 < bound <= self._last:
            place = bound / self._last
            axes.plot([place, place], [22, 36], color=INK, linewidth=1.3, zorder=3)
            words = f"bound {bound * self._step_s:.1f} s: no method can be faster"
            side = "left" if place < 0.3 else "right" if place > 0.7 else "center"
            axes.text(place, 13, words, fontsize=8.5, color=SOFT, ha=side, va="center")
        for artist in (self._bar, self._time):
            artist.set_animated(True)

    def draw(self, step: int) -> None:
        """Draw the time at `step`."""
        self._bar.set_width(step / self._last)
        self._time.set_text(f"{step * self._step_s:.1f} s")
        for artist in (self._bar, self._time):
            self._axes.draw_artist(artist)


# --- files -----------------------------------------------------------------------------------------------------------


def _write_gif(flights: Mapping[str, Episode], steps: list[int], draft: Path, fps: int) -> None:
    stage = Stage(flights)
    palette = _palette(stage.scene)
    images = (Image.fromarray(stage.image(step)).quantize(palette=palette, dither=Image.Dither.NONE) for step in steps)
    tick = 10 * max(2, round(100 / fps))  # GIF counts hundredths of a second
    durations = [tick] * len(steps)
    durations[0] = round(1000 * FIRST_HOLD_S)
    durations[-1] = round(1000 * LAST_HOLD_S)
    # "optimize" leaves pixels that did not change out of an image: a third of the size.
    next(images).save(
        draft, format="GIF", save_all=True, append_images=images, duration=durations, loop=0, optimize=True
    )


def _palette(scene: Scene) -> Image.Image:
    """One palette for all images, so that nothing flickers: every color in use, in a few shades toward white."""
    signs = [to_rgb(name) for name in (INK, SOFT, LOST, FAINT, SUCCESS, FAILURE, STAR, MAP)]
    colors = np.vstack([signs, np.unique(subnet_colors(scene.subnet), axis=0)])  # heights are shades of them
    shades = np.concatenate([shade * colors + (1 - shade) for shade in GIF_SHADES] + [np.ones((1, 3))])
    image = Image.new("P", (1, 1))
    image.putpalette(np.round(shades * 255).astype(np.uint8).tobytes())
    return image


def _write_mp4(flights: Mapping[str, Episode], steps: list[int], draft: Path, fps: int) -> None:
    """H.264 in 4:2:0, which every player and browser shows."""
    require_extra("MP4 movies", "movie", "imageio_ffmpeg")
    import imageio_ffmpeg

    try:
        imageio_ffmpeg.get_ffmpeg_exe()
    except RuntimeError:
        raise InputError("cannot write an MP4: there is no ffmpeg on this machine; name a .gif instead") from None
    stage = Stage(flights)
    writer = imageio_ffmpeg.write_frames(
        str(draft), stage.size, fps=fps, codec="libx264", pix_fmt_out="yuv420p", quality=None, macro_block_size=2,
        ffmpeg_log_level="error", output_params=["-crf", "20", "-preset", "medium", "-movflags", "+faststart"],
    )  # fmt: skip
    writer.send(None)
    try:
        for k, step in enumerate(steps):
            image = stage.image(step)
            hold = LAST_HOLD_S if k == len(steps) - 1 else FIRST_HOLD_S if k == 0 else 0.0
            for _ in range(max(1, round(hold * fps))):
                writer.send(image)
    finally:
        writer.close()
