"""Takes images of the board from a running system, each with the measured pose of the tool at rest."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import Image

from bid_msgs.msg import ArmStatus, TwinScene
from bid_ros.calibration.board import Board
from bid_ros.calibration.detection import Sighting, sight
from bid_ros.calibration.rigid import apart, from_pose
from bid_ros.calibration.shots import Shot
from bid_ros.calibration.twin_scene import TwinCamera
from bid_ros.cameras.config import CameraConfig
from bid_ros.cameras.image import decode_image
from bid_ros.core.errors import CalibrationError
from bid_ros.core.poses import pose_arrays
from bid_ros.core.rotation import Array, quaternion_from_matrix
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.topics import (
    ARM_STATUS,
    BODIES,
    CALIBRATION_POSE,
    IMAGES,
    SCENES,
    TOPICS,
    TWIN_SCENE,
    camera_full_topic,
)
from bid_ros.nodes.client import visiting
from bid_ros.nodes.executor import FastExecutor
from bid_ros.nodes.ros_messages import pose_stamped
from bid_ros.nodes.topics import profile, publisher

REST_NS: Final = 500_000_000  # for which the arm has not moved
STILL: Final = (0.0005, 0.1)  # m and degrees that it may have moved in that time
OTHER: Final = (0.03, 6.0)  # m or degrees between two poses that are worth an image each
REACHED: Final = (0.02, 3.0)  # m and degrees from the pose asked for; an arm sags, and its measured pose counts
SILENT_S: Final = 15.0  # for an arm or a camera
FOREVER_S: Final = 86_400.0  # for a person
GOING_S: Final = 60.0
ASK_S: Final = 0.2  # between two messages that ask for the same pose
TURN_S: Final = 0.02


@dataclass(frozen=True, eq=False)
class Taken:
    """An image that shows the board.

    Attributes:
        shot: image and pose.
        tool: ``(4, 4)`` that pose.
        sighting: where the board's corners are in the image.
    """

    shot: Shot
    tool: Array
    sighting: Sighting


class SystemWatch:
    """Listens to a running system: where the arm is, and what a camera sees. One thread only.

    Args:
        node: of this process.
        camera: as its file has it.
        twin: renders the board in the twin; None: the images are those of the camera.

    Attributes:
        joints: newest measured ones, rad.
    """

    def __init__(self, node: Node, camera: CameraConfig, twin: TwinCamera | None) -> None:
        self._node, self._camera, self._twin = node, camera, twin
        self._executor = FastExecutor()
        self._executor.add_node(node)
        self._poses: deque[tuple[int, Array]] = deque()
        self._source, self._heard = "", time.monotonic()
        self.joints: Array = np.empty(0)
        self._scene: TwinScene | None = None
        self._image: Image | None = None
        node.create_subscription(ArmStatus, ARM_STATUS, self._on_status, profile(TOPICS[ARM_STATUS].qos))
        if twin is not None:
            node.create_subscription(TwinScene, TWIN_SCENE, self._on_scene, profile(SCENES.qos))
        else:
            topic = camera.address if camera.source == "topic" else camera_full_topic(camera.name)
            node.create_subscription(Image, topic, self._on_image, profile(IMAGES.qos))
        self._goals = publisher(node, CALIBRATION_POSE, BODIES)
        node.create_timer(TURN_S, lambda: None)

    def close(self) -> None:
        """Stop listening."""
        self._executor.shutdown()

    def until(self, condition: Callable[[], Any], timeout_s: float) -> bool:
        """Listen until a condition holds; False when the time is over."""
        end = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > end:
                return False
            self._executor.spin_once(timeout_sec=TURN_S)
        return True

    @property
    def tool(self) -> Array | None:
        """Newest measured pose ``(4, 4)`` of the tool, base frame; None: none was heard."""
        return self._poses[-1][1] if self._poses else None

    def driven(self) -> bool:
        """Whether the arm rests, and follows the device ``poses``."""
        return self._source == "teleop" and self.rests()

    def rests(self) -> bool:
        """Whether the arm has rested for half a second."""
        if len(self._poses) < 2 or self._poses[-1][0] - self._poses[0][0] < 0.9 * REST_NS:
            return False
        last = self._poses[-1][1]
        return all(_within(pose, last, STILL) for _, pose in self._poses)

    def rests_elsewhere(self, before: Sequence[Array]) -> bool:
        """Whether the arm rests, and at another pose than any of those ``(4, 4)``.

        Raises:
            CalibrationError: the arm is silent.
        """
        if time.monotonic() - self._heard > SILENT_S:
            raise CalibrationError("no arm is heard on arm/status; valid is a running system: bid up, or bid teleop")
        tool = self.tool
        return tool is not None and all(_differs(tool, other) for other in before) and self.rests()

    def image(self) -> tuple[NDArray[np.uint8], int]:
        """Wait for an image that is as old as the rest, and return it, with its stamp in ns.

        Raises:
            CalibrationError: none comes.
            CameraError: as :meth:`seen`.
        """
        end = time.monotonic() + SILENT_S
        while (found := self.seen()) is None:
            if time.monotonic() > end:
                raise CalibrationError("no image of the camera comes while the arm rests; valid is a running camera")
            self._executor.spin_once(timeout_sec=TURN_S)
        return found

    def seen(self) -> tuple[NDArray[np.uint8], int] | None:
        """Return the newest image whole ``(height, width, 3)`` rgb, and its stamp in ns, if it is as old as the rest.

        Raises:
            CameraError: an image cannot be decoded, or the twin has no such camera.
        """
        since = self._poses[0][0] if self._poses else 0
        if self._twin is not None:
            if self._scene is None or stamp_ns(self._scene) < since:
                return None
            scene = self._scene
            state = (np.array(part) for part in (scene.qpos, scene.mocap_pos, scene.mocap_quat))
            return self._twin.take(*state), stamp_ns(scene)
        if self._image is None or stamp_ns(self._image) < since:
            return None
        return decode_image(self._image, self._camera.name), stamp_ns(self._image)

    def go(self, tool: Array) -> bool:
        """Ask the device ``poses`` for a pose ``(4, 4)`` of the tool; return whether the arm came to rest there."""
        message = pose_stamped(time.time_ns(), "", tool[:3, 3], quaternion_from_matrix(tool[:3, :3]))
        asked = 0.0

        def there() -> bool:
            nonlocal asked
            if time.monotonic() - asked > ASK_S:
                asked = time.monotonic()
                self._goals.publish(message)
            return self.tool is not None and _within(self.tool, tool, REACHED) and self.rests()

        return self.until(there, GOING_S)

    def _on_status(self, message: ArmStatus) -> None:
        now, self._source, self._heard = stamp_ns(message), str(message.source), time.monotonic()
        self.joints = np.array(message.joint_positions)
        self._poses.append((now, from_pose(*pose_arrays(message.tool))))
        while self._poses[0][0] < now - REST_NS or self._poses[0][0] > now:
            self._poses.popleft()

    def _on_scene(self, message: TwinScene) -> None:
        self._scene = message

    def _on_image(self, message: Image) -> None:
        self._image = message


@contextmanager
def watching(camera: CameraConfig, twin: TwinCamera | None, namespace: str) -> Iterator[SystemWatch]:
    """Give what listens to a running system, until the end of the block.

    Args:
        camera, twin: as :class:`SystemWatch`.
        namespace: of the system.
    """
    with visiting("bid_calibrate", namespace) as node:
        watch = SystemWatch(node, camera, twin)
        try:
            yield watch
        finally:
            watch.close()


def take(watch: SystemWatch, board: Board, others: list[Taken], again: bool = True) -> Taken:
    """Wait until the arm rests at another pose than before and the board is seen, and return the image.

    Args:
        watch: of the system.
        board: as it is described.
        others: images before.
        again: wait for another pose while the board is not seen; otherwise that is an error.

    Raises:
        CalibrationError: the arm or the camera says nothing, or the board is not seen.
        CameraError: an image cannot be decoded.
    """
    before = [item.tool for item in others]
    while True:
        watch.until(partial(watch.rests_elsewhere, before), FOREVER_S)
        image, stamp = watch.image()
        tool = watch.tool
        if tool is None or not watch.rests_elsewhere(before):  # it has gone on
            continue
        try:
            return Taken(Shot(image, tool, stamp), tool, sight(image, board))
        except CalibrationError as error:
            if not again:
                raise
            print(f"not taken: {error}", file=sys.stderr, flush=True)
            before = [*(item.tool for item in others), tool]


def _within(one: Array, other: Array, most: tuple[float, float]) -> bool:
    distance, angle = apart(one, other)
    return distance <= most[0] and angle <= most[1]


def _differs(one: Any, other: Any) -> bool:
    distance, angle = apart(one, other)
    return distance > OTHER[0] or angle > OTHER[1]
