"""Probes of cameras and of topics of vectors: what each delivers, held against what the task observes."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.cameras.config import CameraConfig, open_camera
from bid_ros.cameras.image import ImageFitter
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import CameraError
from bid_ros.core.feature import Feature
from bid_ros.core.task import Task
from bid_ros.system.check.finding import CheckFinding
from bid_ros.system.folder import POLICY, System
from bid_ros.system.run import RunArguments

FIRST_S: Final = 5.0  # for the first image; a driver is discovered and a device opened in it
WATCH_S: Final = 2.0  # in which the rate is measured
SLOW: Final = 0.9  # of the rate that the task observes
BY_TASK: Final = "task.yaml observes it"
BY_DECISIONS: Final = "decision_rate_hz asks for it: each decision sees a new image"
OLD_S, AHEAD_S = 0.5, 0.05  # stamps further away than these belong to another clock, or to nothing


@dataclass
class Seen:
    """What came from one camera or topic.

    Attributes:
        arrivals_ns: steady time of every image or message.
        ages_s: time of arrival less its stamp, of each.
        picture: size and encoding, such as ``640x480 rgb8``; of a message the number of its values.
        problem: why one cannot be used; empty if every one can.
        source: more about where they come from, if none did.
    """

    arrivals_ns: list[int] = field(default_factory=list)
    ages_s: list[float] = field(default_factory=list)
    picture: str = ""
    problem: str = ""
    source: str = ""

    def add(self, fitter: ImageFitter, image: NDArray[Any], stamp_ns: int, encoding: str) -> None:
        """Take one image, as a feature holds it, with its stamp, and fit it as the camera node would."""
        self.arrived(stamp_ns, f"{image.shape[1]}x{image.shape[0]} {encoding}")
        try:
            fitter.fit(image)
        except CameraError as error:
            self.problem = str(error)

    def arrived(self, stamp_ns: int, picture: str) -> None:
        """Note an arrival, and the stamp and the look of what arrived."""
        self.arrivals_ns.append(time.monotonic_ns())
        self.ages_s.append((time.time_ns() - stamp_ns) / NANOSECONDS)
        self.picture = picture

    def watched(self, begun_ns: int, watch_s: float = WATCH_S) -> bool:
        """Whether it was watched for so long, or the first image is overdue since ``begun_ns``, steady time."""
        first_ns, for_s = (self.arrivals_ns[0], watch_s) if self.arrivals_ns else (begun_ns, FIRST_S)
        return bool(self.problem) or time.monotonic_ns() - first_ns > for_s * NANOSECONDS

    def timing(self) -> dict[str, float]:
        """Return the rate in Hz, how far nine of ten intervals are at most from the middle one, and the age on arrival.

        Empty for fewer than three arrivals. The age in ms is the delay of the camera and of its way, if its clock is
        that of this computer.
        """
        if len(self.arrivals_ns) < 3:
            return {}
        steps_ms = np.diff(np.array(self.arrivals_ns)) / 1e6
        middle = float(np.median(steps_ms))
        return {
            "rate_hz": round(1e3 / float(np.mean(steps_ms)), 2),
            "jitter_ms": round(float(np.percentile(np.abs(steps_ms - middle), 90)), 2),
            "latency_ms": round(1e3 * float(np.median(self.ages_s)), 2),
            "latency_p90_ms": round(1e3 * float(np.percentile(self.ages_s, 90)), 2),
        }


def fitter_of(camera: CameraConfig, task: Task) -> ImageFitter:
    """Return what crops and resizes the images of a camera to what the task observes."""
    return ImageFitter(camera.name, camera.crop, feature_of(camera, task).shape)


def decision_rate_hz(system: System, arguments: RunArguments) -> float:
    """Return how many decisions a second a run makes; 0: the task's rate, or no policy drives."""
    if (arguments.driver or system.settings.driver) != POLICY:
        return 0.0
    given = arguments.decision_rate
    return system.settings.policy.decision_rate_hz if given is None else given


def judge_camera(camera: CameraConfig, task: Task, seen: Seen, decision_rate_hz: float = 0.0) -> CheckFinding:
    """Hold what came from a camera against what asks for the higher rate: the task, or the decisions.

    Args:
        camera: of the system.
        task: what is observed.
        seen: what came from the camera.
        decision_rate_hz: decisions a second, each of which wants a new image; 0: the task's rate.
    """
    what, source = f"camera {camera.name}", f"images of {camera.source} {camera.address}"
    silent = CheckFinding(what, "fail", source, "start its driver, or correct the address in cameras.yaml")
    observed = feature_of(camera, task).rate_hz
    wanted = (observed, BY_TASK) if observed >= decision_rate_hz else (decision_rate_hz, BY_DECISIONS)
    return _judge(silent, *wanted, seen, "change the driver's settings, or crop in cameras.yaml")


def judge_vector(feature: Feature, seen: Seen, twin: bool) -> CheckFinding:
    """Hold what came from the topic of a vector against the task. Its silence fails only where there is a robot."""
    what, source = f"vector {feature.name}", f"messages of {feature.topic}"
    silent = CheckFinding(
        what, "warn" if twin else "fail", source, "start its driver, or correct the topic in task.yaml"
    )
    return _judge(silent, feature.rate_hz, BY_TASK, seen, "correct type, field and shape in task.yaml")


def _judge(silent: CheckFinding, wanted: float, asked: str, seen: Seen, advice: str) -> CheckFinding:
    """Hold what arrived against the rate that is wanted, in Hz.

    Args:
        silent: for fewer than two arrivals; its ``measured`` says what is counted.
        wanted: rate, Hz.
        asked: by which setting, :data:`BY_TASK` or :data:`BY_DECISIONS`.
        seen: what arrived.
        advice: what to do if none of it can be used.
    """
    what = silent.what
    if seen.problem:
        return CheckFinding(what, "fail", seen.problem, advice)
    if len(seen.arrivals_ns) < 2:
        return replace(silent, measured=f"{len(seen.arrivals_ns)} {silent.measured} in {FIRST_S:g} s{seen.source}")
    elapsed_s = (seen.arrivals_ns[-1] - seen.arrivals_ns[0]) / NANOSECONDS
    rate, age_s = (len(seen.arrivals_ns) - 1) / elapsed_s, float(np.median(seen.ages_s))
    shown = f"{rate:.1f} Hz, {seen.picture}, stamps {1e3 * age_s:.0f} ms old"
    if rate < SLOW * wanted:
        return CheckFinding(what, "fail", shown, f"make it {wanted:g} Hz or more, as {asked}")
    if not -AHEAD_S < age_s < OLD_S:
        return CheckFinding(
            what, "warn", shown, "synchronise the clocks, or let the driver stamp with the time of exposure"
        )
    return CheckFinding(what, "ok", shown)


def watch_device(camera: CameraConfig, fitter: ImageFitter, folder: Path, watch_s: float = WATCH_S) -> Seen:
    """Open a camera that is a device, and return what it delivers.

    Args:
        camera: it.
        fitter: makes its images what the task observes.
        folder: of the camera file.
        watch_s: how long, from the first image on, s.

    Raises:
        CameraError: it cannot be opened, or is lost.
    """
    seen, begun_ns = Seen(), time.monotonic_ns()
    device = open_camera(camera, folder)
    device.open()
    try:
        while not seen.watched(begun_ns, watch_s):
            if (frame := device.read()) is not None:
                seen.add(fitter, frame.image, frame.stamp_ns, "rgb8")
    finally:
        device.close()
    return seen


def device_findings(
    cameras: Sequence[CameraConfig], task: Task, folder: Path, decision_rate_hz: float = 0.0
) -> Iterator[CheckFinding]:
    """Open every camera that is a device, one after the other, and yield what it delivers.

    Args:
        cameras: devices, neither topics nor the twin's cameras.
        task: what is observed.
        folder: of the camera file.
        decision_rate_hz: decisions a second; 0: the task's rate.
    """
    for camera in cameras:
        try:
            seen = watch_device(camera, fitter_of(camera, task), folder)
        except CameraError as error:
            yield CheckFinding(
                f"camera {camera.name}", "fail", str(error), "correct its source and address in cameras.yaml"
            )
        else:
            yield judge_camera(camera, task, seen, decision_rate_hz)


def feature_of(camera: CameraConfig, task: Task) -> Feature:
    """Return the image of a task that a camera delivers."""
    return next(feature for feature in task.cameras if feature.name == camera.name)
