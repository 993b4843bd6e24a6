"""Plots the motion of episodes: tool, gripper and speed, commanded and measured, beside the limits."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import RecordingError
from bid_ros.core.limits import Limits
from bid_ros.core.plot_style import BLUE, GREEN, INK, LIMIT, ORANGE, PURPLE, RED, clean, figure_of, png_of
from bid_ros.core.task import Task
from bid_ros.core.topics import DECISION
from bid_ros.curation.catalog import BagEpisode
from bid_ros.curation.commanded import commanded_of, measured_speeds
from bid_ros.curation.track import EpisodeTrack, read_track
from bid_ros.recording.reader import BagReader

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AXES: Final = (("x", RED), ("y", GREEN), ("z", BLUE))
STOP: Final = "#e0483a"
OUTCOMES: Final = {True: "#1f8a4c", False: "#c03030", None: "#9a6b00"}


def write_episode_plot(reader: BagReader, episodes: Sequence[BagEpisode], task: Task | None, out: Path) -> None:
    """Write a plot of the motion of each of the episodes, side by side.

    Args:
        reader: the open bag.
        episodes: at least one of its episodes.
        task: its limits are drawn; None: no limits.
        out: PNG file to write.

    Raises:
        RecordingError: the bag has no motion of an arm, or is damaged.
    """
    tracks = [read_track(reader, episode, {DECISION: ""}) for episode in episodes]
    moving = [track for track in tracks if len(track.tool) or track.arm is not None]
    if not moving:
        raise RecordingError(
            f"bag {reader.path} has no motion of an arm; valid is a bag with arm/status or arm/tool_pose"
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(plot_png(moving, None if task is None else task.limits, (8.0, 6.2), 110))


def plot_png(
    tracks: Sequence[EpisodeTrack], limits: Limits | None, size: tuple[float, float], dpi: int, title: bool = True
) -> bytes:
    """Return a PNG of the motion of episodes side by side, each of a size in inches; limits None are not drawn."""
    width = size[0] * (1 if len(tracks) == 1 else 0.6 * len(tracks))
    figure = figure_of(width, size[1])
    figure.set_dpi(dpi)
    panels = figure.subplots(3, len(tracks), squeeze=False, sharex="col", sharey="row", height_ratios=(2.2, 1.0, 1.4))
    for number, track in enumerate(tracks):
        _position(panels[0, number], track)
        _gripper(panels[1, number], track)
        _speed(panels[2, number], track, limits)
        _marks(panels[:, number], track)
        if title:
            recorded = track.recorded
            text = f"episode {recorded.number}  {recorded.label}  {recorded.outcome}"
            panels[0, number].set_title(text, fontsize=10, color=OUTCOMES[recorded.success], loc="left")
        panels[2, number].set_xlabel("s since START", fontsize=9)
        panels[2, number].set_xlim(0, max(track.recorded.duration_s, 0.1))
    for row, label in enumerate(("tool, m", "gripper, mm", "speed, m/s")):
        panels[row, 0].set_ylabel(label, fontsize=9)
    for panel in panels.flat:
        clean(panel)
    _legends(figure, panels)
    return png_of(figure)


def _seconds(track: EpisodeTrack, times_ns: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray((times_ns - track.recorded.begin_ns) / 1e9, dtype=np.float64)


def _position(panel: Any, track: EpisodeTrack) -> None:
    for axis, (name, color) in enumerate(AXES):
        if len(track.tool):
            panel.plot(_seconds(track, track.tool_ns), track.tool[:, axis], color=color, linewidth=1.6, label=name)
        if track.arm is not None:
            times, reference = _seconds(track, track.arm.stamps_ns), track.arm.reference[:, axis]
            panel.plot(times, reference, color=color, linewidth=1.0, linestyle=(0, (3, 2)), alpha=0.8)
    panel.plot([], [], color=INK, linewidth=1.0, linestyle=(0, (3, 2)), label="commanded")
    panel.margins(y=0.08)


def _gripper(panel: Any, track: EpisodeTrack) -> None:
    if track.arm is None:
        return
    times = _seconds(track, track.arm.stamps_ns)
    panel.step(times, 1000 * track.arm.asked, where="post", color=INK, linewidth=0.9, linestyle=(0, (3, 2)))
    panel.plot(times, 1000 * track.arm.width, color=ORANGE, linewidth=1.6)


def _speed(panel: Any, track: EpisodeTrack, limits: Limits | None) -> None:
    if len(track.tool):
        speeds = measured_speeds(track.tool_ns, track.tool)
        panel.plot(_seconds(track, track.tool_ns), speeds, color=BLUE, linewidth=1.6)
    motion = None if track.arm is None else commanded_of(track.arm)
    if motion is not None:
        times = _seconds(track, motion.instants_ns)
        panel.plot(times, motion.speeds[:, 0], color=INK, linewidth=0.9, linestyle=(0, (3, 2)))
    if limits is not None:
        panel.axhline(limits.max_speed, color=LIMIT, linewidth=1.0, label="limit")
    panel.set_ylim(bottom=0)


def _marks(panels: Any, track: EpisodeTrack) -> None:
    """Mark the decisions as ticks below the speed, and the time in which the arm was stopped."""
    decisions = track.series_of(DECISION)
    if decisions is not None:
        times = _seconds(track, decisions.log_ns)
        panels[2].plot(times, np.zeros(len(times)), "|", color=PURPLE, markersize=9, label="decision", clip_on=False)
    if track.arm is not None and track.arm.stopped.any():
        times, stopped = _seconds(track, track.arm.stamps_ns), track.arm.stopped
        for panel in panels:
            panel.fill_between(
                times, 0, 1, where=stopped, transform=panel.get_xaxis_transform(), color=STOP, alpha=0.18, linewidth=0
            )
        panels[2].fill_between([], [], [], color=STOP, alpha=0.18, label="stopped")


def _legends(figure: "Figure", panels: Any) -> None:
    """Say once what the lines are."""
    handles: dict[str, Any] = {}
    for panel in panels.flat:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles), fontsize=8, frameon=False
    )
