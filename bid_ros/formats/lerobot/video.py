"""Videos of a LeRobotDataset: one per camera, H.264 in MP4."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import RecordingError
from bid_ros.core.extras import extra
from bid_ros.formats.files import readable
from bid_ros.formats.lerobot.layout import GROUP

OFF_GRID: Final = 0.25  # of a frame: so far from a frame's time a time stamp is not that of the frame


def av() -> Any:
    """Return the package PyAV. Raises RecordingError if the extra ``data`` is not installed."""
    with extra("data", "a LeRobot data set with videos", RecordingError):
        import av as package

        return package


@contextmanager
def _opened(path: Path, mode: str = "r") -> Iterator[Any]:
    """Open a video; what is wrong with it becomes one sentence."""
    package = av()
    with readable(path):
        try:
            with closing(package.open(str(path), mode)) as container:
                yield container
        except package.error.FFmpegError as error:
            raise ValueError(str(error)) from error


def encode(frames: Iterable[NDArray[np.uint8]], path: Path, fps: int, quality: int) -> None:
    """Write frames ``(height, width, 3)`` rgb as H.264, yuv420p, with a whole picture every ``GROUP`` frames.

    Args:
        frames: all of one, even size.
        path: file to write.
        fps: frames per second.
        quality: constant rate factor.

    Raises:
        RecordingError: PyAV is not installed, or has no encoder for H.264.
    """
    package = av()
    # One thread and no frames that look ahead: the same frames give the same file.
    options = {"crf": str(quality), "g": str(GROUP), "bf": "0", "threads": "1", "preset": "medium"}
    with _opened(path, "w") as container:
        stream = None
        for frame in frames:
            if stream is None:
                stream = container.add_stream("libx264", fps, options=options)
                stream.height, stream.width, stream.pix_fmt = *frame.shape[:2], "yuv420p"
            picture = package.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")
            container.mux(stream.encode(picture))
        if stream is not None:
            container.mux(stream.encode())


def join(parts: Sequence[Path], target: Path) -> None:
    """Write videos of one size and rate into one file, one after the other, without coding them again."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with _opened(target, "w") as output:
        stream, offset = None, 0
        for part in parts:
            with _opened(part) as video:
                (track,) = video.streams.video
                if stream is None:
                    stream = output.add_stream_from_template(track)
                end = offset
                for packet in video.demux(track):
                    if packet.dts is None:
                        continue
                    packet.pts += offset
                    packet.dts += offset
                    packet.stream = stream
                    end = max(end, packet.pts + packet.duration)
                    output.mux(packet)
            offset = end


@dataclass(frozen=True)
class Frames:
    """Where the frames of an episode are.

    Attributes:
        path: file of the video.
        rows: rows of all episodes in it. If it has as many frames, they are counted; else they are found by their time.
        end: end of the last row in it by time stamps, s.
        first: rows in it before those of the episode.
        begin: time in it from which the episode's time stamps count, s.
    """

    path: Path
    rows: int
    end: float
    first: int = 0
    begin: float = 0.0

    def count(self) -> int:
        """Return the number of frames in the file. Raises RecordingError if it is missing or damaged."""
        with _track(self.path) as (container, stream):
            return _count(container, stream)


@contextmanager
def _track(path: Path) -> Iterator[tuple[Any, Any]]:
    """Open the video of a file."""
    if not path.exists():
        raise RecordingError(f"video {path} does not exist")
    with _opened(path) as container:
        (stream,) = container.streams.video[:1]
        yield container, stream


def _count(container: Any, stream: Any) -> int:
    return int(stream.frames) or sum(1 for packet in container.demux(stream) if packet.size)


def decode(
    frames: Frames, rows: NDArray[np.int64], stamps: NDArray[np.float64], fps: float, shape: tuple[int, ...]
) -> NDArray[np.uint8]:
    """Return the frames of some rows of an episode, ``(len(rows), *shape)`` rgb.

    Args:
        frames: where they are.
        rows: numbers of the rows in the episode, ascending.
        stamps: ``(T,)`` time stamp of each row of the episode, s.
        fps: rows per second.
        shape: of one frame, ``(height, width, 3)``.

    Raises:
        RecordingError: the file is missing or damaged, lacks one of the frames, has frames of which nothing says whose
            they are, or frames of another size, or distances.
    """
    found, pictures = 0, np.empty((len(rows), *shape), np.uint8)
    with _track(frames.path) as (container, stream):
        wanted, half = _times(container, stream, frames, rows, stamps, fps)
        container.seek(int(max(0.0, wanted[0] - half) / stream.time_base), stream=stream)
        for frame in container.decode(stream):
            # Frames before the first one belong to the episode before, or lead to it from a whole picture.
            time = float(frame.pts * stream.time_base)
            if time < wanted[found] - half:
                continue
            if time > wanted[found] + half:
                break
            picture = _picture(frame, frames.path, shape)
            while found < len(rows) and abs(time - wanted[found]) <= half:
                pictures[found] = picture
                found += 1
            if found == len(rows):
                return pictures
    raise RecordingError(f"video {frames.path} lacks the frame at {wanted[found]:.3f} s")


def _times(
    container: Any,
    stream: Any,
    frames: Frames,
    rows: NDArray[np.int64],
    stamps: NDArray[np.float64],
    fps: float,
) -> tuple[NDArray[np.float64], float]:
    """Return the time of each row's frame in the file, and how far from it the frame may be, s."""
    count, rate = _count(container, stream), float(stream.average_rate or fps)
    if count == frames.rows:
        start = float((stream.start_time or 0) * stream.time_base)
        return start + (frames.first + rows) / rate, 0.5 / rate
    if count / rate > frames.end + 0.9 / fps:
        raise RecordingError(
            f"video {frames.path} has {count} frames for {frames.rows} rows, whose timestamps end after "
            f"{frames.end:.3f} s: nothing says which frames are theirs; valid is a frame for each row"
        )
    places = (frames.begin + stamps) * rate
    if np.abs(places - np.round(places)).max() > OFF_GRID:
        raise RecordingError(
            f"video {frames.path} has {count} frames for {frames.rows} rows, whose timestamps are not those of frames; "
            "valid is a frame for each row"
        )
    return frames.begin + stamps[rows], 0.5 / max(rate, fps)


def _picture(frame: Any, path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    parts = frame.format.components
    if len(parts) == 1 and parts[0].bits > 8:
        raise RecordingError(f"video {path} has {parts[0].bits} bits a channel, as distances have; valid is 8")
    picture: NDArray[np.uint8] = frame.to_ndarray(format="rgb24")
    if picture.shape != shape:
        raise RecordingError(f"video {path} has frames of {picture.shape}; the data set says {shape}")
    return picture
