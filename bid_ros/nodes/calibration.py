"""Takes images of the board from a running system, each with the measured pose of the tool at rest."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import Image

from bid_msgs.msg import TwinScene
from bid_ros.calibration.board import Board
from bid_ros.calibration.detection import Sighting, sight
from bid_ros.calibration.rigid import apart
from bid_ros.calibration.shots import Shot
from bid_ros.calibration.twin_scene import TwinCamera
from bid_ros.cameras.config import CameraConfig
from bid_ros.cameras.image import decode_image
from bid_ros.core.errors import CalibrationError
from bid_ros.core.rotation import Array, quaternion_from_matrix
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.topics import (
    BODIES,
    CALIBRATION_POSE,
    IMAGES,
    SCENES,
    TWIN_SCENE,
    camera_full_topic,
)
from bid_ros.nodes.arm_watch import SILENT, SILENT_S, TURN_S, ArmWatch, within
from bid_ros.nodes.client import visiting
from bid_ros.nodes.interrupt import interrupt_after
from bid_ros.nodes.ros_messages import pose_stamped
from bid_ros.nodes.topics import profile, publisher

OTHER: Final = (0.03, 6.0)  # m or degrees between two poses that are worth an image each
REACHED: Final = (0.02, 3.0)  # m and degrees from the pose asked for; an arm sags, and its measured pose counts
FOREVER_S: Final = 86_400.0  # for a person
GOING_S: Final = 60.0
ASK_S: Final = 0.2  # between two messages that ask for the same pose


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


class SystemWatch(ArmWatch):
    """Listens to a running system: where the arm is, and what a camera sees. One thread only.

    Args:
        node: of this process.
        camera: as its file has it.
        twin: renders the board in the twin; None: the images are those of the camera.
    """

    def __init__(self, node: Node, camera: CameraConfig, twin: TwinCamera | None) -> None:
        super().__init__(node)
        self._camera, self._twin = camera, twin
        self._scene: TwinScene | None = None
        self._image: Image | None = None
        if twin is not None:
            node.create_subscription(TwinScene, TWIN_SCENE, self._on_scene, profile(SCENES.qos))
        else:
            topic = camera.address if camera.source == "topic" else camera_full_topic(camera.name)
            node.create_subscription(Image, topic, self._on_image, profile(IMAGES.qos))
        self._goals = publisher(node, CALIBRATION_POSE, BODIES)

    def rests_elsewhere(self, before: Sequence[Array]) -> bool:
        """Whether the arm rests, and at another pose than any of those ``(4, 4)``.

        Raises:
            CalibrationError: the arm is silent.
        """
        if time.monotonic() - self._heard > SILENT_S:
            raise CalibrationError(SILENT)
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
            with interrupt_after():
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
            return self.tool is not None and within(self.tool, tool, REACHED) and self.rests()

        return self.until(there, GOING_S)

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


def _differs(one: Any, other: Any) -> bool:
    distance, angle = apart(one, other)
    return distance > OTHER[0] or angle > OTHER[1]
