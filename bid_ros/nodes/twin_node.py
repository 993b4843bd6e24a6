"""Twin node: serves the task's robot, publishes the scene for the twin's cameras and ground truth, and resets it."""

from collections.abc import Callable, Mapping
from functools import partial

from std_srvs.srv import Trigger

from bid_msgs.msg import EpisodeEvent, TwinScene
from bid_msgs.srv import ResetEpisode
from bid_ros.core.errors import BidError
from bid_ros.core.schedule import PeriodicThread, Tick
from bid_ros.core.topics import (
    ARM_STATUS,
    BODIES,
    EPISODE_EVENT,
    SCENES,
    TWIN_HARMS,
    TWIN_RESET,
    TWIN_SCENE,
    body_topic,
)
from bid_ros.episodes.causes import PACE, SLOW_TWIN
from bid_ros.nodes.base import TWIN_PRIORITY, BidNode
from bid_ros.nodes.heartbeat import RARE_S
from bid_ros.nodes.parameters import Parameter
from bid_ros.nodes.ros_bus import NodeBus
from bid_ros.nodes.ros_messages import float64_array, header, pose_stamped
from bid_ros.system.priority import raise_priority
from bid_ros.tasks.twins import build_twin

PARAMETERS = (
    Parameter("task", "", "path of the task file, which names robot and kind of task"),
    Parameter("address", "127.0.0.1", "loopback address the twin serves"),
    Parameter("arm_config", "", "path of the robot's configuration file, for a robot that is driven through ROS"),
    Parameter("scene_rate_hz", 10, "scene states a second, which is the rate of the twin's cameras", 1, 100),
)


class TwinNode(BidNode):
    """The simulated robot and scene. A real system has no such node. It ends after the arm node."""

    outlives = (ARM_STATUS,)
    heartbeat_s = RARE_S

    def __init__(self) -> None:
        super().__init__("twin", PARAMETERS)
        raise_priority(TWIN_PRIORITY)
        task = self.load_task()
        self._frame = task.base_frame
        bus = NodeBus(f"{self.get_name()}_robot", self.get_namespace())
        self._twin = build_twin(task, self.value("address"), bus, self.value("arm_config"))
        period_ns, failed = round(1e9 / self.value("scene_rate_hz")), partial(self.thread_ended, "the scene thread")
        self._thread = PeriodicThread("scene", period_ns, self._publish, on_error=failed)
        self._scenes = self.advertise(TWIN_SCENE, SCENES)
        self._bodies = {name: self.advertise(body_topic(name), BODIES) for name in self._twin.bodies}
        self.serve(ResetEpisode, TWIN_RESET, self._on_reset)
        for name, harm in getattr(self._twin, "harms", {}).items():  # one of another package may have none
            self.serve(Trigger, TWIN_HARMS[name], partial(self._on_harm, harm))
        self.subscribe(EPISODE_EVENT, self._on_event)

    def begin(self) -> None:
        """Serve the robot and run the physics. Last, because a long hold of Python's lock stops the robot's clock."""
        self._twin.start()
        self._thread.start()
        self.get_logger().info(f"twin serves {self._twin.hostname}")

    def diagnose(self) -> tuple[bool, str, Mapping[str, object]]:
        """Return how well the simulation keeps real time."""
        statistics = self._twin.statistics()
        pace = statistics.get(PACE, 1.0)
        kept = pace >= SLOW_TWIN
        said = "serving" if kept else f"keeps {pace:.2f} of real time; a computer that is less busy keeps 1"
        return kept, said, {key: round(value, 4) for key, value in statistics.items()}

    def close(self) -> None:
        """End the simulation."""
        self._thread.stop()
        self._twin.stop()

    def _on_reset(self, request: ResetEpisode.Request) -> tuple[bool, str]:
        try:
            self._twin.reset(int(request.seed), float(request.target_speed))
        except BidError as error:
            return False, str(error)
        return True, "the scene is laid out"

    def _on_harm(self, harm: Callable[[], None], _: Trigger.Request) -> tuple[bool, str]:
        try:
            harm()
        except BidError as error:
            return False, str(error)
        return True, "done; end this twin and start it again to have it back"

    def _on_event(self, event: EpisodeEvent) -> None:
        if event.kind == EpisodeEvent.START:
            self._twin.start_path()

    def _publish(self, _: Tick) -> None:
        state = self._twin.scene_state()
        message = TwinScene(
            header=header(state.stamp_ns, self._frame),
            robot=self.robot,
            qpos=float64_array(state.qpos),
            mocap_pos=float64_array(state.mocap_pos),
            mocap_quat=float64_array(state.mocap_quat),
        )
        self._scenes.publish(message)
        for name, pose in self._twin.ground_truth().bodies.items():
            self._bodies[name].publish(pose_stamped(state.stamp_ns, self._frame, *pose))


main = TwinNode.main
