"""Who prepares and judges an episode: physics in the twin, a person at a robot."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from geometry_msgs.msg import PoseStamped
from numpy.typing import NDArray
from std_srvs.srv import SetBool, Trigger

from bid_msgs.srv import ResetEpisode
from bid_ros.evaluation.episode import EpisodeStopped
from bid_ros.nodes.convert import pose_arrays
from bid_ros.nodes.qos import STATE
from bid_ros.rotation import DOWN_6D
from bid_ros.sim.geometry import OBJECT_DIAMETER
from bid_ros.sim.scoring import PlacementScore
from bid_ros.stamps import stamp_ns

if TYPE_CHECKING:
    from bid_ros.nodes.episode_node import EpisodeNode

DOWN = np.array(DOWN_6D)
OPEN, CLOSED = 0.08, 0.0
OPENED = 0.07  # a wider gripper counts as open, as it stops a little before the full width


class Operator(Protocol):
    """Prepares the scene of an episode, then says how the episode ended."""

    def prepare(self, start: NDArray[np.float64], seed: int, moving: float) -> None:
        """Bring tool, object and cup to the start of the episode; blocks."""

    def judge(self, episode: int, started: float, timeout_s: float) -> str:
        """Block until the episode is over; return its outcome: success, timeout or dropped."""


class TwinOperator:
    """Homes the arm through the safety node, lets the twin lay out the scene, and scores from ground truth."""

    def __init__(self, node: EpisodeNode) -> None:
        self._node = node
        self._reset = node.create_client(ResetEpisode, "/twin/reset")
        self._score = PlacementScore()
        self._cup: Any = None
        self._object: Any = None
        node.create_subscription(PoseStamped, "/ground_truth/cup_pose", self._on_cup, STATE)
        node.create_subscription(PoseStamped, "/ground_truth/object_pose", self._on_object, STATE)
        self._outcome = ""
        self._judging = False

    def prepare(self, start: NDArray[np.float64], seed: int, moving: float) -> None:
        """Open, go to the start, take the object. ``start`` (3,) is the tool position in m, base frame."""
        node = self._node
        node.move_to(start, DOWN, OPEN)
        node.hold(start, DOWN, OPEN, lambda: node.status().gripper_width > OPENED, 3.0)
        self._call_reset(seed, moving)
        node.hold(start, DOWN, CLOSED, self._grasped, 4.0)

    def judge(self, episode: int, started: float, timeout_s: float) -> str:
        """Score from physics while the policy acts."""
        self._score.reset()
        self._outcome, self._judging = "", True
        try:
            while True:
                elapsed = time.monotonic() - started
                self._node.check()
                if self._outcome:
                    return self._outcome
                if elapsed > timeout_s:
                    return "timeout"
                self._node.progress(episode, elapsed, self._distance())
                time.sleep(0.1)
        finally:
            self._judging = False

    def _grasped(self) -> bool:
        status = self._node.status()
        return 0.6 * OBJECT_DIAMETER < status.gripper_width < 1.25 * OBJECT_DIAMETER and not status.gripper_busy

    def _call_reset(self, seed: int, moving: float) -> None:
        done = threading.Event()
        if not self._reset.wait_for_service(timeout_sec=10.0):
            raise EpisodeStopped("aborted: the twin offers no reset", safety=False)
        future = self._reset.call_async(ResetEpisode.Request(seed=seed, cup_speed=moving))
        future.add_done_callback(lambda _: done.set())
        self._node.wait(done.is_set, 10.0, "the reset of the twin")
        response = future.result()
        if not response.success:
            raise EpisodeStopped(f"aborted: the twin was not reset: {response.message}", safety=False)

    def _on_cup(self, message: PoseStamped) -> None:
        self._cup = pose_arrays(message.pose)

    def _on_object(self, message: PoseStamped) -> None:
        self._object = pose_arrays(message.pose)
        if not self._judging or self._cup is None or self._outcome:
            return
        outcome = self._score.update(
            stamp_ns(message),
            cup_position=self._cup[0],
            object_position=self._object[0],
            object_quaternion=self._object[1],
            gripper_width=float(self._node.status().gripper_width),
        )
        self._outcome = "" if outcome == "pending" else outcome

    def _distance(self) -> str:
        if self._cup is None or self._object is None:
            return ""
        return f"object to cup {1e3 * float(np.linalg.norm((self._object[0] - self._cup[0])[:2])):4.0f} mm"


class RobotOperator:
    """Homes the arm and asks a person, by services that ``bid operator`` calls, for start and outcome."""

    def __init__(self, node: EpisodeNode) -> None:
        self._node = node
        self._started = threading.Event()
        self._outcome = ""
        node.create_service(Trigger, "/episode/start", self._on_start)
        node.create_service(SetBool, "/episode/outcome", self._on_outcome)

    def prepare(self, start: NDArray[np.float64], seed: int, moving: float) -> None:
        """Open, go to the start, wait for the person to insert the object and start; then grasp."""
        node = self._node
        node.move_to(start, DOWN, OPEN)
        self._started.clear()
        print("put the object between the fingers, then start the episode with: bid operator", flush=True)
        node.hold(start, DOWN, OPEN, self._started.is_set, 3600.0)
        node.hold(start, DOWN, CLOSED, self._grasped, 5.0)

    def judge(self, episode: int, started: float, timeout_s: float) -> str:
        """Wait for the person's verdict; without one the episode times out."""
        self._outcome = ""
        while not self._outcome:
            elapsed = time.monotonic() - started
            self._node.check()
            if elapsed > timeout_s:
                return "timeout"
            self._node.progress(episode, elapsed, "")
            time.sleep(0.1)
        return self._outcome

    def _grasped(self) -> bool:
        status = self._node.status()
        return status.gripper_width < OPENED and not status.gripper_busy

    def _on_start(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._started.set()
        response.success = True
        return response

    def _on_outcome(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self._outcome = "success" if request.data else "failure"
        response.success = True
        return response
