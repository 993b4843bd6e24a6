"""Camera node: pairs all cameras by stamp, crops and resizes once, feeds policy, recorder and monitor."""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import Image
from tf2_msgs.msg import TFMessage

from bid_msgs.msg import TwinScene
from bid_ros.cameras.config import CameraConfig, check_depths, has_sensor, load_cameras, open_camera
from bid_ros.cameras.content import FrameWatch
from bid_ros.cameras.depth import read_image
from bid_ros.cameras.image import ImageFitter, encode_image
from bid_ros.cameras.pairing import FramePairing, PairWatch
from bid_ros.cameras.registry import BY_NODE
from bid_ros.cameras.stamping import CameraClock
from bid_ros.core import topics
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.clocks import read_clocks
from bid_ros.core.errors import CameraError
from bid_ros.core.stamps import stamp_ns
from bid_ros.nodes.base import HARDWARE_PRIORITY, BidNode
from bid_ros.nodes.camera_views import CameraViews, rendered_size
from bid_ros.nodes.parameters import Parameter
from bid_ros.nodes.ros_messages import camera_info, header, transform_message
from bid_ros.system.priority import raise_priority

PARAMETERS = (
    Parameter("task", "", "path of the task file, which names the cameras and their shapes"),
    Parameter("cameras", "", "path of the camera file: source, crop and calibration of each camera"),
    Parameter("twin", False, "the system runs in its twin: the cameras' sections `twin` hold"),
    Parameter("tolerance_s", 0.02, "largest difference in s between the stamps of one pair", 0.0, 1.0),
    Parameter("open_timeout_s", 10.0, "time in s within which every camera must have delivered a frame", 0.5, 120.0),
    Parameter("twin_delay_s", 0.0, "least age in s of the twin's images, to imitate a camera's delay", 0.0, 0.1),
    Parameter("pair_rate_hz", 0.0, "pairs of images a second, if cameras are as fast; 0: the task's", 0.0, 100.0),
)
STALLED_PERIODS = 1.5  # without a pair, after which there is no heartbeat
WAITING = "waiting for "
# Of the period. A picture for a person must not be in the way: on a busy computer the images took longer than this
# after their scene, and so much must be left before the next one.
VIEW_TIME = 0.25
REOPEN_S = 1.0  # between two tries to open a device that is lost, s


class CameraNode(BidNode):
    """Publishes one stream of paired frames from topics, devices or the twin.

    Its work is the arrival of pairs. So a camera that stops is noticed by the silence of this node.
    """

    def __init__(self) -> None:
        super().__init__("camera", PARAMETERS, work_limit_s=0.0)  # it follows from the cameras' rates, below
        self._task = self.load_task()
        self._features = {feature.name: feature for feature in self._task.cameras}
        names = list(self._features)
        self._cameras = load_cameras(Path(self.value("cameras")), names, self.value("twin"))
        check_depths(self._task.cameras, self._cameras)
        self._fitters = {
            name: ImageFitter(name, camera.crop, self._features[name].shape) for name, camera in self._cameras.items()
        }
        wanted = self.value("pair_rate_hz")
        self._watches = {
            name: FrameWatch(name, has_sensor(camera), wanted or self._features[name].rate_hz)
            for name, camera in self._cameras.items()
        }
        self._clocks = {name: CameraClock(name) for name in names}
        rate = min(feature.rate_hz for feature in self._task.cameras)
        self._period_ns = round(NANOSECONDS / (wanted or rate))
        self.heartbeat.limit_s = STALLED_PERIODS / rate
        self._pairing = FramePairing(names, wanted or rate, self.value("tolerance_s"))
        self._images = {name: self.advertise(topics.camera_topic(name), topics.IMAGES) for name in names}
        self._infos = {name: self.advertise(topics.camera_info_topic(name), topics.CALIBRATIONS) for name in names}
        devices = [name for name, camera in self._cameras.items() if camera.source not in BY_NODE]
        self._whole = {name: self.advertise(topics.camera_full_topic(name), topics.IMAGES) for name in devices}
        self._views = CameraViews(self, names)
        self._transforms = self.advertise(topics.TF_STATIC)
        self._publish_transforms()
        self._pairs = 0
        self._arrivals = PairWatch(names, self.value("open_timeout_s"), time.monotonic_ns())
        self._problem = WAITING + ", ".join(self._features)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._newest_scene: SimpleQueue[TwinScene | None] = SimpleQueue()  # None ends the rendering
        self._scenes_dropped = 0
        self.create_timer(0.5, self._watch)

    def diagnose(self) -> tuple[bool, str, Mapping[str, object]]:
        """Return pairs, drops and skew."""
        values: dict[str, object] = {"pairs": self._pairs, "scenes_dropped": self._scenes_dropped}
        values.update(self._pairing.statistics())
        problem = self._problem or self._slow()
        return not problem, problem or "delivering", values

    def close(self) -> None:
        """End the device threads."""
        self._stop.set()
        self._newest_scene.put(None)
        self._views.close()
        for thread in self._threads:
            thread.join(timeout=2.0)

    def _publish_transforms(self) -> None:
        """Publish the poses of the calibrated cameras, in the base frame or in that of the tool."""
        frames, now = {"base": self._task.base_frame, "tool": self._task.tool_frame}, self.now_ns()
        transforms = [
            transform_message(
                now,
                frames[camera.frame],
                self.frame_prefix + topics.optical_frame(camera.name),
                camera.position,
                camera.quaternion,
            )
            for camera in self._cameras.values()
            if camera.position is not None and camera.quaternion is not None
        ]
        if transforms:
            self._transforms.publish(TFMessage(transforms=transforms))

    def begin(self) -> None:
        """Open the cameras, each in a thread of its own, except those of topics."""
        self._start("the pictures", self._views.run)
        twins = [camera for camera in self._cameras.values() if camera.source == "twin"]
        if twins:
            raise_priority(HARDWARE_PRIORITY)
            self.subscribe(topics.TWIN_SCENE, self._on_scene, topics.SCENES)
            self._start("render", partial(self._render, twins))
        for camera in self._cameras.values():
            if camera.source == "topic":
                self.subscribe(camera.address, partial(self._on_image, camera), topics.source_topic(camera.address))
            elif camera.source != "twin":
                self._start(camera.name, partial(self._read, camera))

    def _start(self, name: str, work: Callable[[], None]) -> None:
        """Start a thread. A camera that fails is reported. Another failure ends this node, except during a shutdown."""

        def run() -> None:
            try:
                work()
            except CameraError as error:
                self._report(str(error))
            except Exception as error:
                if not self._stop.is_set():
                    self.thread_ended(f"the thread of {name}", error)

        self._threads.append(threading.Thread(target=run, name=name, daemon=True))
        self._threads[-1].start()

    def _on_image(self, camera: CameraConfig, message: Any) -> None:
        # An image that cannot be decoded is an error, not silence.
        self._arrivals.heard(camera.name, time.monotonic_ns())
        try:
            image = read_image(self._features[camera.name], message, camera.address)
        except CameraError as error:
            self._report(str(error))
        else:
            self._take(camera, stamp_ns(message), image)

    def _on_scene(self, message: TwinScene) -> None:
        with suppress(Empty):
            self._newest_scene.get_nowait()
            self._scenes_dropped += 1
        self._newest_scene.put(message)

    def _render(self, cameras: list[CameraConfig]) -> None:
        """Render in the one thread that owns the GL context. Only the newest scene is rendered."""
        # These import MuJoCo and OpenGL, which only a twin needs.
        from bid_ros.sim.renderer import SceneRenderer
        from bid_ros.tasks.twins import scene_model

        names = [camera.name for camera in cameras]
        height, width, _ = self._features[names[0]].shape
        depths = [name for name in names if self._features[name].depth]
        try:
            renderer = SceneRenderer(scene_model(self._task), width, height, names, depths=depths)
        except CameraError as error:  # no image will ever come, so the start of the system need not wait for one
            self.refuse(error)
            return
        while scene := self._newest_scene.get():  # the context is freed with the process
            mocap_pos = np.array(scene.mocap_pos).reshape(-1, 3)
            mocap_quat = np.array(scene.mocap_quat).reshape(-1, 4)
            images = renderer.render(np.array(scene.qpos), mocap_pos, mocap_quat)
            age_s = (self.now_ns() - stamp_ns(scene)) / NANOSECONDS
            self._stop.wait(max(0.0, self.value("twin_delay_s") - age_s))
            for camera in cameras:
                self._deliver(camera, stamp_ns(scene), images[camera.name])
            for name in names:
                if self._views.wanted(name) and self._has_time(scene, age_s):
                    picture = renderer.picture(name, *rendered_size(height, width))
                    self._views.offer(name, stamp_ns(scene), picture)
            names.append(names.pop(0))  # if time is short, the next picture is of another camera

    def _has_time(self, scene: TwinScene, took_s: float) -> bool:
        """Whether a picture for a person can be rendered before the next scene, if the images took so long."""
        needed_ns, left_ns = VIEW_TIME * self._period_ns, stamp_ns(scene) + self._period_ns - self.now_ns()
        return self._newest_scene.empty() and NANOSECONDS * took_s < needed_ns < left_ns

    def _read(self, camera: CameraConfig) -> None:
        """Deliver the images of a device. One that is lost, or not there yet, is opened again until this node ends."""
        device = open_camera(camera, Path(self.value("cameras")).parent)
        while not self._stop.is_set():
            try:
                device.open()
                while not self._stop.is_set():
                    if (frame := device.read()) is not None:
                        self._take(camera, frame.stamp_ns, frame.image)
            except CameraError as error:
                self._report(f"camera '{camera.name}': {error}")
            finally:
                device.close()
            self._stop.wait(REOPEN_S)

    def _take(self, camera: CameraConfig, stamp_ns: int, image: NDArray[Any]) -> None:
        """Deliver an image with the stamp of its driver, or report why it is of no use."""
        self._arrivals.heard(camera.name, time.monotonic_ns())
        clock = self._clocks[camera.name]
        known = clock.notice
        try:
            self._deliver(camera, clock.stamp_ns(stamp_ns, read_clocks().wall_ns), image)
        except CameraError as error:
            self._report(str(error))
        if clock.notice != known:
            self.get_logger().warning(clock.notice)

    def _deliver(self, camera: CameraConfig, stamp_ns: int, image: NDArray[Any]) -> None:
        now_ns = time.monotonic_ns()
        self._arrivals.heard(camera.name, now_ns)
        fitted = self._fitters[camera.name].fit(image)
        if problem := self._watches[camera.name].look(image, now_ns):  # no policy decides on such an image
            self._report(problem)
            return
        if camera.name in self._whole and self._whole[camera.name].get_subscription_count():  # bid calibrate
            frame = self.frame_prefix + topics.optical_frame(camera.name)
            self._whole[camera.name].publish(Image(header=header(stamp_ns, frame), **encode_image(image)))
        with self._lock:
            pairs = self._pairing.add(camera.name, stamp_ns, fitted)
        for pair in pairs:
            self._publish(pair.stamp_ns, pair.frames)
        if camera.source != "twin" and self._views.wanted(camera.name):
            self._views.offer(camera.name, stamp_ns, image, camera.crop)

    def _publish(self, stamp_ns: int, frames: Mapping[str, NDArray[Any]]) -> None:
        for name, frame in frames.items():
            message = Image(
                header=header(stamp_ns, self.frame_prefix + topics.optical_frame(name)), **encode_image(frame)
            )
            self._images[name].publish(message)
            calibration = camera_info(message.width, message.height, self._cameras[name].fovy)
            calibration.header = message.header
            self._infos[name].publish(calibration)
        self._pairs += 1
        self._arrivals.paired(time.monotonic_ns())
        before, self._problem = self._problem, ""
        self.worked()
        if before and not before.startswith(WAITING):
            self.tell()

    def _watch(self) -> None:
        problem, silent = self._arrivals.problem(time.monotonic_ns())
        if problem and (silent or not self._problem or self._problem.startswith(WAITING)):
            self._report(f"{problem}; {self._advice()}")
        elif slow := self._slow():
            self.get_logger().warning(slow, throttle_duration_sec=5.0)

    def _slow(self) -> str:
        """Return which camera delivers too few images; empty if none does."""
        return next(filter(None, (watch.rate_problem() for watch in self._watches.values())), "")

    def _advice(self) -> str:
        if all(camera.source == "twin" for camera in self._cameras.values()):
            return "the twin sends no scene; see its log"
        return f"check its source in {self.value('cameras')}"

    def _report(self, problem: str) -> None:
        if self._stop.is_set():
            return
        news = not self._problem or self._problem.startswith(WAITING)
        self._problem = problem
        self.get_logger().error(problem, throttle_duration_sec=2.0)
        if news:  # before the heartbeat is missed, so that the stop can say why
            self.tell()


main = CameraNode.main
