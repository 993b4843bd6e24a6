"""Who prepares and judges an episode, by the rules of its task: physics in the twin, a person at a robot."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
from geometry_msgs.msg import PoseStamped
from numpy.typing import NDArray
from std_srvs.srv import SetBool, Trigger

from bid_msgs.srv import ResetEpisode
from bid_ros.evaluation.episode import EpisodeStopped
from bid_ros.evaluation.trial import PENDING, Trial
from bid_ros.nodes.convert import pose_arrays
from bid_ros.nodes.qos import STATE
from bid_ros.rotation import DOWN_6D
from bid_ros.sim.twins import Pose
from bid_ros.stamps import stamp_ns

if TYPE_CHECKING:
    from bid_ros.nodes.episode_node import EpisodeNode
    from bid_ros.teleop import Demonstrator

DOWN = np.array(DOWN_6D)
CLOSED = 0.0  # m, asked for to squeeze whatever is between the fingers
OPENING_S = 10.0  # to open the gripper; the first time in its life it may have to be activated before
GRASPING_S = 5.0
PERSON_S = 3600.0
SHOWING_S = 5.0
# After a reset, until the frames that a policy looks at, the older ones included, show the new scene.
SHOWN_NS = 300_000_000


class Operator(Protocol):
    """Prepares the scene of an episode, then says how the episode ended."""

    def prepare(self, start: NDArray[np.float64], seed: int, moving: float, label: str) -> None:
        """Bring tool and scene to the start of the episode, a demonstration in the style ``label`` or not; blocks."""

    def judge(self, episode: int, started: float, timeout_s: float) -> str:
        """Block until the episode is over; return its outcome: success, timeout or dropped."""


class TwinOperator:
    """Homes the arm through the safety node, lets the twin lay out the scene, and scores from ground truth."""

    def __init__(self, node: EpisodeNode, trial: Trial, demonstrator: Demonstrator | None) -> None:
        self._node = node
        self._trial = trial
        self._demonstrator = demonstrator
        self._reset = node.create_client(ResetEpisode, "/twin/reset")
        self._stamps: dict[str, int] = {}
        self._bodies: dict[str, Pose] = {}
        for name in trial.bodies:
            topic = f"/ground_truth/{name}_pose"
            node.create_subscription(PoseStamped, topic, partial(self._on_body, name), STATE)
        self._outcome = ""
        self._judging = False

    def prepare(self, start: NDArray[np.float64], seed: int, moving: float, label: str) -> None:
        """Open, go to the start, lay out the scene, take what belongs into the gripper, and let everyone see it.

        Args:
            start: ``(3,)`` tool position, m, base frame.
            seed: of the scene.
            moving: speed of the cup, m/s.
            label: of the episode; a style of demonstration may begin elsewhere, from there on.
        """
        node, setup = self._node, self._trial.setup
        node.move_to(start, DOWN, setup.open_width)
        node.hold(start, DOWN, setup.open_width, self._open, OPENING_S, "the opening")
        self._call_reset(seed, moving)
        shown_ns, width = node.now_ns() + SHOWN_NS, setup.open_width
        if setup.held is not None:
            low, high = setup.held
            width = CLOSED
            node.hold(start, DOWN, width, lambda: low < self._settled_width() < high, GRASPING_S, "the grasp")
        seen = "a sign of life of the twin's scene"
        node.hold(start, DOWN, width, lambda: min(self._stamps.values(), default=0) > shown_ns, SHOWING_S, seen)
        self._go_on(seed, label)

    def judge(self, episode: int, started: float, timeout_s: float) -> str:
        """Score from physics while the policy acts."""
        self._trial.reset()
        self._outcome, self._judging = "", True
        try:
            while True:
                elapsed = time.monotonic() - started
                self._node.check()
                if self._outcome:
                    return self._outcome
                if elapsed > timeout_s:
                    return "timeout"
                self._node.progress(episode, elapsed, self._trial.progress(self._bodies) if self._complete() else "")
                time.sleep(0.1)
        finally:
            self._judging = False

    def _go_on(self, seed: int, style: str) -> None:
        """Bring the tool to where a demonstration of a style begins, if that is not the start of every episode."""
        if self._demonstrator is None or style not in self._demonstrator.styles:
            return
        node, places = self._node, {name: position for name, (position, _) in self._bodies.items()}
        for position, width in self._demonstrator.preparation(style, seed, places):
            node.move_to(position, DOWN, width)
            node.hold(position, DOWN, width, lambda: not node.status().gripper_busy, GRASPING_S, "the fingers' rest")

    def _open(self) -> bool:
        return bool(self._node.status().gripper_width > self._trial.setup.opened)

    def _settled_width(self) -> float:
        """Opening in m of a gripper at rest; NaN, which is no width, while it moves."""
        status = self._node.status()
        return float("nan") if status.gripper_busy else float(status.gripper_width)

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

    def _on_body(self, name: str, message: PoseStamped) -> None:
        self._stamps[name], self._bodies[name] = stamp_ns(message), pose_arrays(message.pose)
        if not self._judging or self._outcome or not self._complete():
            return
        outcome = self._trial.update(
            self._stamps[name], self._bodies, self._node.tool_position(), float(self._node.status().gripper_width)
        )
        self._outcome = "" if outcome == PENDING else outcome

    def _complete(self) -> bool:
        """Whether the poses of all bodies have arrived, of one instant."""
        return len(self._stamps) == len(self._trial.bodies) and len(set(self._stamps.values())) == 1


class RobotOperator:
    """Homes the arm and asks a person, by services that ``bid operator`` calls, for start and outcome."""

    def __init__(self, node: EpisodeNode, trial: Trial) -> None:
        self._node = node
        self._setup = trial.setup
        self._started = threading.Event()
        self._outcome = ""
        node.create_service(Trigger, "/episode/start", self._on_start)
        node.create_service(SetBool, "/episode/outcome", self._on_outcome)

    def prepare(self, start: NDArray[np.float64], seed: int, moving: float, label: str) -> None:
        """Open, go to the start, wait until the person has set up the scene; then grasp what they gave."""
        node, setup = self._node, self._setup
        node.move_to(start, DOWN, setup.open_width)
        self._started.clear()
        print(f"{setup.request}, then start the episode with: bid operator", flush=True)
        node.hold(start, DOWN, setup.open_width, self._started.is_set, PERSON_S, "the start")
        if setup.held is not None:
            node.hold(start, DOWN, CLOSED, self._grasped, GRASPING_S, "the grasp")

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
        # How wide what a person brought is, nobody knows.
        status = self._node.status()
        return status.gripper_width < self._setup.opened and not status.gripper_busy

    def _on_start(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._started.set()
        response.success = True
        return response

    def _on_outcome(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self._outcome = "success" if request.data else "failure"
        response.success = True
        return response
