"""The video of a run, which ``bid up`` and ``bid episodes video`` draw."""

from contextlib import suppress
from pathlib import Path

from bid_ros.commands.progress import progress
from bid_ros.core.errors import BidError
from bid_ros.core.extras import extra
from bid_ros.core.task import load_task
from bid_ros.system.folder import file_beside

CAMERAS = "cameras"  # what they saw, with the decisions over one of them


def draw_run(bag: Path, out: Path, task_file: Path, twin: bool) -> Path | None:
    """Write the video of a run: the shaded scene with the policy's images beside it.

    A robot's bag says nothing of the bodies, and some robots have no outlines: then what the cameras saw.

    Args:
        bag: the recording.
        out: GIF, WebP or MP4 file to write.
        task_file: of the run.
        twin: whether the run was in the twin.

    Returns:
        The file; None: the bag has nothing of an episode to show.

    Raises:
        BidError: as :func:`bid_ros.views.replay_video.write_run_video`.
    """
    from bid_ros.views.replay_video import write_run_video  # takes a third of a second to import

    if twin:
        with suppress(BidError):  # what the cameras saw needs neither outlines nor rendering
            return draw_studio(bag, out, task_file, "run", twin)
    return write_run_video(bag, out, task_file, twin)


def draw_studio(
    bag: Path, out: Path, task_file: Path, quality: str, twin: bool, at_s: float = 3.0, episode: int | None = None
) -> Path | None:
    """Write the shaded scene of a run, and show how far it is; as :func:`bid_ros.views.studio_video.write_studio`."""
    with extra("twin", "a shaded picture"):
        from bid_ros.views.studio_video import write_studio
    from bid_ros.views.overlay import tool_places

    places = tool_places(load_task(task_file), file_beside(task_file, "robot.yaml"), twin)
    with progress("pictures") as step:
        return write_studio(bag, out, load_task(task_file), places, quality, at_s, episode, step)
