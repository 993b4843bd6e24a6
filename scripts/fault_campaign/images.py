"""Images that are frozen, late, black, swapped, damaged or gone, between the twin's cameras and the camera node.

A second camera node, the lens, renders the twin; a relay in this process passes its images on, as a camera's driver
would, to the camera node of the system, which takes them as it takes those of any ROS camera.
"""

from __future__ import annotations

import copy
import random
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import rclpy
import yaml
from rclpy.context import Context
from rclpy.node import Node

from bid_ros.core.topics import IMAGES, camera_info_topic, camera_topic
from bid_ros.nodes.executor import FastExecutor
from bid_ros.nodes.topics import message_type, profile, publisher
from fault_campaign.fault import Fault, Robot, Scene
from fault_campaign.system import Plan

LATE_S: Final = 0.5
GONE_S: Final = 3.0
STALLED_S: Final = 0.15  # one and a half periods, after which the camera node gives no heartbeat
TURN_S: Final = 0.02
Change = Callable[[str, Any], Any]
_relays: dict[str, ImageRelay] = {}  # of running trials, by trace


class ImageRelay:
    """Passes images on, from ``lens/NAME`` to ``faulty/NAME``.

    Args:
        names: of the cameras; domain: ROS domain of the system.

    Attributes:
        change: from camera and message to what is sent in its place, None: nothing.
        late_s: s for which images are kept back.
        newest: by camera, before the change.
    """

    def __init__(self, names: list[str], domain: int) -> None:
        self.change: Change = lambda _, message: message
        self.late_s = 0.0
        self.newest: dict[str, Any] = {}
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain)
        self._node = Node("relay", context=self._context)
        self._executor = FastExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._senders = {name: publisher(self._node, f"faulty/{name}", IMAGES) for name in names}
        for name in names:
            kind = message_type(IMAGES.type_name)
            self._node.create_subscription(kind, f"lens/{name}", partial(self._take, name), profile(IMAGES.qos))
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._spin, name="relay", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leave the graph."""
        self._ended.set()
        self._thread.join()
        self._node.destroy_node()
        rclpy.shutdown(context=self._context)

    def _spin(self) -> None:
        while not self._ended.is_set():
            self._executor.spin_once(timeout_sec=TURN_S)
        self._executor.shutdown()

    def _take(self, name: str, message: Any) -> None:
        self.newest[name] = message
        changed = self.change(name, copy.copy(message))
        if changed is None:
            return
        if self.late_s:
            threading.Timer(self.late_s, self._senders[name].publish, (changed,)).start()
        else:
            self._senders[name].publish(changed)


def images() -> Iterator[Fault]:
    """Yield what can be wrong with images."""
    content: dict[str, tuple[str, Callable[[ImageRelay], Change]]] = {
        "frozen": ("images are frozen, with new stamps", _frozen),
        "black": ("images are black", lambda _: _black),
        "swapped": ("images of the two cameras are swapped", _swapped),
        "small": ("images have half the height", lambda _: _small),
        "noise": ("images are noise", lambda _: _noise),
    }
    for name, (what, make) in content.items():
        yield _fault(name, what, partial(_change, make))
    late = _fault("late", f"images come {LATE_S:g} s late", _delay)
    yield replace(late, deadline=_silent_s)
    gone = _fault("gone", f"no image for {GONE_S:g} s", partial(_silence, None))
    one = _fault("one-gone", f"no image of one camera for {GONE_S:g} s", partial(_silence, 0))
    for fault in (gone, one):
        yield replace(fault, deadline=_silent_s)


def _silent_s(robot: Robot) -> float:
    return robot.heartbeat_s + STALLED_S


def _fault(name: str, what: str, inject: Callable[[Scene], None]) -> Fault:
    return Fault(
        f"images-{name}", "images", what, inject, lambda _: None, prepare=_insert, clean=_remove, may_stop=True
    )  # fmt: skip


def write_sources(file: Path, names: list[str]) -> None:
    """Write a camera file whose images are those of the relay, in the twin too."""
    # In their sections `twin`: a twin renders every camera that has none.
    sources = {name: {"source": "topic", "address": f"faulty/{name}"} for name in names}
    file.write_text(yaml.safe_dump({name: {**source, "twin": source} for name, source in sources.items()}))


def _insert(plan: Plan, robot: Robot) -> None:
    names = [camera.name for camera in robot.task.cameras]
    file = Path(plan.trace).with_name("cameras.yaml")
    write_sources(file, names)
    plan.parameters.setdefault("camera", {})["cameras"] = str(file)
    system = robot.system
    remapped = {camera_topic(name): f"lens/{name}" for name in names}
    remapped |= {camera_info_topic(name): f"lens/{name}/camera_info" for name in names}
    lens = {"task": str(system.file("task.yaml")), "cameras": str(system.file("cameras.yaml")), "twin": True}
    plan.further.append(
        {
            "name": "lens",
            "executable": "camera_node",
            "parameters": lens,
            "remapped": {**remapped, "heartbeat": "lens/heartbeat"},
        }
    )
    _relays[plan.trace] = ImageRelay(names, plan.domain)


def _remove(folder: Path) -> None:
    _relays.pop(str(folder / "trace.bin")).close()


def _relay(scene: Scene) -> ImageRelay:
    return _relays[scene.system.plan.trace]


def _change(make: Callable[[ImageRelay], Change], scene: Scene) -> None:
    relay = _relay(scene)
    relay.change = make(relay)


def _delay(scene: Scene) -> None:
    _relay(scene).late_s = LATE_S


def _silence(camera: int | None, scene: Scene) -> None:
    """Pass nothing on for a while, of one camera or of all; then everything again."""
    relay = _relay(scene)
    gone = sorted(relay.newest) if camera is None else [sorted(relay.newest)[camera]]
    relay.change = lambda name, message: None if name in gone else message
    time.sleep(GONE_S)
    relay.change = lambda _, message: message


def _frozen(relay: ImageRelay) -> Change:
    kept = {name: message.data for name, message in relay.newest.items()}

    def change(name: str, message: Any) -> Any:
        message.data = kept[name]
        return message

    return change


def _black(_: str, message: Any) -> Any:
    message.data = array("B", bytes(len(message.data)))
    return message


def _noise(_: str, message: Any) -> Any:
    message.data = array("B", random.randbytes(len(message.data)))
    return message


def _small(_: str, message: Any) -> Any:
    message.data = message.data[: len(message.data) // 2]
    message.height //= 2
    return message


def _swapped(relay: ImageRelay) -> Change:
    first, second = sorted(relay.newest)

    def change(name: str, message: Any) -> Any:
        message.data = relay.newest[second if name == first else first].data
        return message

    return change
