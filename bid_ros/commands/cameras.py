"""``bid cameras``: which cameras there are, what those of a system deliver, and a lock of their light."""

import argparse
import json
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

from bid_ros.commands.arguments import SYSTEM_HELP
from bid_ros.commands.robot import NAMESPACE
from bid_ros.core.errors import BidError, CameraError
from bid_ros.core.tables import aligned
from bid_ros.core.topics import check_namespace
from bid_ros.system.folder import System, find_system
from bid_ros.system.run import RunArguments

if TYPE_CHECKING:
    from bid_ros.cameras.base import AdjustableCamera
    from bid_ros.cameras.config import CameraConfig
    from bid_ros.cameras.listing import FoundCamera
    from bid_ros.system.check.cameras import Seen

SECONDS: Final = 2.0
WEB_PORT: Final = 9090
DESCRIPTION: Final = """List cameras, measure what they deliver, and lock their light.

bid cameras                        RealSense cameras, those of Video4Linux, and image topics with their rates
bid cameras SYSTEM [CAMERA]        open the cameras of its cameras.yaml: real rate, jitter and latency
bid cameras SYSTEM CAMERA --lock   hold exposure, gain and white balance as they are now, and write them there
bid cameras SYSTEM CAMERA --lock off   let the camera choose them again
bid cameras SYSTEM [CAMERA] --web  their live images with the crop drawn in, in a browser (extra view)

A camera that is a device must be free: end the system first. Only cameras are opened; nothing moves.
A lock outlives this program and holds for other programs too: until --lock off, or until the device loses power.
jitter: nine of ten intervals differ from the median interval by at most this. latency: age of an image on arrival."""


def add_parser(verbs: Any) -> None:
    """Add ``cameras``."""
    parser = verbs.add_parser(
        "cameras",
        help="list cameras, measure and lock them",
        description=DESCRIPTION,
        epilog="Exit status: 0 all well; 1 no camera, or a camera delivers nothing or the wrong thing; 2 bad input.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("system", nargs="?", default="", help=SYSTEM_HELP)
    parser.add_argument(
        "camera", nargs="?", default="", help="the camera's name in cameras.yaml; without it: all cameras"
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"seconds to measure (default {SECONDS:g})")
    parser.add_argument(
        "--lock",
        nargs="?",
        const="on",
        default="",
        choices=("on", "off"),
        help="on, or no value: hold exposure, gain and white balance of one camera; its scene must not change then. "
        "off: let the camera control them again, even if the line `locked` was deleted from cameras.yaml",
    )
    parser.add_argument(
        "--web", action="store_true", help="show live images to browsers on this computer, until Ctrl-C"
    )
    parser.add_argument("--namespace", default="", help=NAMESPACE)
    parser.add_argument("--json", action="store_true", help="print the result on standard output")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """List, measure, lock or show; return 1 if there is no camera, or one is not well."""
    if not 0.5 <= options.seconds <= 3600:
        raise BidError(f"--seconds is {options.seconds:g}; valid is 0.5 to 3600")
    namespace = check_namespace(options.namespace)
    if not options.system:
        if options.lock or options.web:
            raise BidError("--lock and --web need a system; valid is: bid cameras SYSTEM CAMERA --lock")
        return _list(namespace, options.seconds, options.json)
    system = find_system(options.system)
    cameras = _chosen(system, options.camera)
    if options.lock:
        return _lock(system, cameras, options.lock == "on", options.json)
    if options.web:
        return _show(system, cameras, namespace)
    return _measure(system, cameras, namespace, options)


def _chosen(system: System, name: str) -> list["CameraConfig"]:
    """Return the cameras that are meant, as they are at the robot. Raises BidError for an unknown name."""
    from bid_ros.commands.calibrate import camera_of

    names = [name] if name else [camera.name for camera in system.task.cameras]
    return [camera_of(system, each, twin=False) for each in names]


def _list(namespace: str, seconds: float, as_json: bool) -> int:
    from bid_ros.cameras.listing import realsense_cameras, uvc_cameras

    notes: list[str] = []
    found = [*_tried(realsense_cameras, notes), *uvc_cameras()]
    topics: dict[str, Seen] = {}
    try:
        from bid_ros.nodes.camera_probe import watch_images
    except ImportError as error:
        notes.append(f"without image topics: {error}; install ROS 2 Jazzy and source it")
    else:
        topics = watch_images(namespace, seconds)
    if as_json:
        told = {
            name: {"picture": seen.picture, "problem": seen.problem, **seen.timing()} for name, seen in topics.items()
        }
        print(json.dumps({"devices": [asdict(camera) for camera in found], "topics": told, "notes": notes}))
    else:
        for line in (*_device_lines(found), *_topic_lines(topics), *notes):
            print(line)
        if not (found or topics):
            print("no camera: no RealSense, no device of Video4Linux, and nobody publishes images")
    return 0 if found or topics else 1


def _tried(listed: Callable[[], list["FoundCamera"]], notes: list[str]) -> list["FoundCamera"]:
    try:
        return listed()
    except CameraError as error:
        notes.append(str(error))
        return []


def _device_lines(found: Sequence["FoundCamera"]) -> Iterator[str]:
    for camera in found:
        serial = f"serial number {camera.serial}" * bool(camera.serial)
        more = (serial, camera.usb, f"firmware {camera.firmware}" * bool(camera.firmware))
        yield f"{camera.source}  {camera.address}  {', '.join(filter(None, (camera.name, *more)))}"
        yield from (f"    {line}" for line in (camera.modes, camera.problem) if line)


def _topic_lines(topics: dict[str, "Seen"]) -> Iterator[str]:
    if topics:
        yield aligned([("topic", name, _told(seen)) for name, seen in topics.items()])


def _told(seen: "Seen") -> str:
    """Return what arrived from one camera as text."""
    timing = seen.timing()
    if seen.problem or not timing:
        return seen.problem or f"{len(seen.arrivals_ns)} images{seen.source}"
    return (
        f"{timing['rate_hz']:5.1f} Hz, jitter {timing['jitter_ms']:.1f} ms, latency {timing['latency_ms']:.1f} ms "
        f"(nine of ten below {timing['latency_p90_ms']:.1f}), {seen.picture}"
    )


def _measure(system: System, cameras: list["CameraConfig"], namespace: str, options: argparse.Namespace) -> int:
    from bid_ros.system.check.cameras import Seen, decision_rate_hz, fitter_of, judge_camera, watch_device

    folder, seen = system.file("cameras.yaml").parent, {camera.name: Seen() for camera in cameras}
    lost: list[str] = []
    if topics := [camera for camera in cameras if camera.source == "topic"]:
        from bid_ros.nodes.camera_probe import watch_topics

        seen |= watch_topics(topics, system.task, namespace, options.seconds, vectors=())
    for camera in cameras:
        if camera.source == "twin":
            seen[camera.name].problem = "the twin renders it; valid is a camera at the robot"
        elif camera.source != "topic":
            try:
                seen[camera.name] = watch_device(camera, fitter_of(camera, system.task), folder, options.seconds)
            except CameraError as error:
                seen[camera.name].problem = str(error)
                lost.append(camera.name)
    decisions_hz = decision_rate_hz(system, RunArguments())
    findings = {each.name: judge_camera(each, system.task, seen[each.name], decisions_hz) for each in cameras}
    for name in lost:
        findings[name] = replace(findings[name], advice="correct its source and address in cameras.yaml")
    if options.json:
        told = {
            name: {**asdict(found), "picture": seen[name].picture, **seen[name].timing()}
            for name, found in findings.items()
        }
        print(json.dumps(told))
    else:
        lines = [(found.state, name, _told(seen[name])) for name, found in findings.items()]
        print(aligned(lines))
        for name, found in findings.items():
            if found.advice:
                print(f"{name}: {found.advice}")
    return int(any(found.state == "fail" for found in findings.values()))


def _lock(system: System, cameras: list["CameraConfig"], on: bool, as_json: bool) -> int:
    """Lock the light of one camera, or give its automatics back, and write that into the camera file."""
    from bid_ros.calibration.camera_file import FILE, write_camera

    if len(cameras) != 1:
        raise BidError(f"--lock is given without a camera; valid is one of {', '.join(item.name for item in cameras)}")
    (camera,) = cameras
    device = _lockable(system, camera)
    if on:
        print(f"{camera.name}: its light settles, and is held; leave the scene as it is", file=sys.stderr, flush=True)
    device.open()
    values: dict[str, Any] | None = None
    before: dict[str, Any] = {}
    try:
        if on:
            values = _held(device)
        else:
            device.automatic()
        if on or camera.locked is not None:
            before = write_camera(system, camera.name, {"locked": values}, twin=False)
    except BaseException:
        if on:  # half a lock, or one that stands nowhere, would stay in the device
            with suppress(CameraError):
                device.automatic()
        raise
    finally:
        device.close()
    if as_json:
        print(json.dumps({"camera": camera.name, "locked": values, "before": before.get("locked")}))
    else:
        told = values or {"automatic": "exposure, gain and white balance, as far as it has them"}
        print("\n".join(f"{name:<14} {value}" for name, value in told.items()))
        if on or camera.locked is not None:
            print(f"wrote          {system.folder / FILE}: {camera.name}")
        if on:
            print(f"the device keeps these until it has no power; the way back: {_way_back(system, camera)}")
    return 0


def _lockable(system: System, camera: "CameraConfig") -> "AdjustableCamera":
    """Return the device of a camera, not yet open, without its lock. Raises CameraError if it has no light to lock."""
    from bid_ros.cameras.base import AdjustableCamera
    from bid_ros.cameras.config import open_camera
    from bid_ros.cameras.registry import BY_NODE

    if camera.source in BY_NODE:
        raise CameraError(
            f"camera '{camera.name}' of source '{camera.source}' cannot be locked here; "
            "valid is a device: set exposure, gain and white balance of a ROS driver by its own parameters"
        )
    device = open_camera(replace(camera, locked=None), system.file("cameras.yaml").parent)
    if not isinstance(device, AdjustableCamera):
        raise CameraError(f"camera '{camera.name}' of source '{camera.source}' has no light to lock; valid is a device")
    return device


def _held(device: "AdjustableCamera") -> dict[str, Any]:
    from bid_ros.cameras.locking import lock_light

    return {name: value for name, value in asdict(lock_light(device)).items() if value not in (None, "")}


def _way_back(system: System, camera: "CameraConfig") -> str:
    return f"bid cameras {system.folder} {camera.name} --lock off"


def _show(system: System, cameras: list["CameraConfig"], namespace: str) -> int:
    """Show live images in Rerun until Ctrl-C."""
    from bid_ros.commands.camera_web import LiveCameras
    from bid_ros.views import rerun_sink
    from bid_ros.views.camera_preview import CameraPreview

    shown = [camera for camera in cameras if camera.source != "twin"]
    if not shown:
        raise BidError("the twin renders these cameras, so they have no live image; valid is a camera at the robot")

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    with rerun_sink.into_browsers(WEB_PORT) as (recording, address):
        preview = CameraPreview(recording, [camera.name for camera in shown])
        say(f"open {address}; Ctrl-C ends it")
        with suppress(KeyboardInterrupt):
            LiveCameras(shown, system.file("cameras.yaml").parent, preview.show, say).run(namespace, threading.Event())
    return 0
