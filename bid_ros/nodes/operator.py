"""Prepares and judges an episode: by physics in the twin, by a person at a robot."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Protocol

import numpy as np
from geometry_msgs.msg import PoseStamped
from numpy.typing import NDArray
from std_srvs.srv import SetBool, Trigger

from bid_msgs.srv import ResetEpisode
from bid_ros.core.rotation import DOWN_6D
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.task import Task
from bid_ros.core.topics import BODIES, EPISODE_OUTCOME, EPISODE_START, TWIN_RESET, body_topic
from bid_ros.episodes.log import EpisodeStopped
from bid_ros.nodes.convert import pose_arrays
from bid_ros.nodes.sequence import SequenceNode
from bid_ros.sim.twin import Pose
from bid_ros.tasks.base import PENDING
from bid_ros.tasks.registry import build_score, kind_of, setup_of

DOWN = np.array(DOWN_6D)
CLOSED = 0.0  # m, commanded to squeeze the object between the fingers
OPENING_S = 10.0  # s to open the gripper; the first time it may have to be activated before
GRASPING_S = 5.0
PERSON_S = 3600.0
SHOWING_S = 5.0
# After a reset, until all frames that a policy observes, the older ones too, show the new scene.
SHOWN_NS = 300_000_000


class Operator(Protocol):
    """Prepares the scene of an episode, then returns its outcome."""

    def prepare(self, start: NDArray[np.float64], seed: int, moving: float, label: str) -> None:
        """Bring tool and scene to the start of an episode. ``label`` may be a style of demonstration. Blocks."""

    def judge(self, episode: int, started: float, timeout_s: float) -> str:
        """Block until the episode is over. Return its outcome: success, timeout or dropped."""


class TwinOperator:
    """Homes the arm through the safety node, lets the twin lay out the scene, and scores from ground truth."""

    def __init__(self, node: SequenceNode, task: Task) -> None:
        self._node = node
        kind = kind_of(task)
        self._setup, self._score, self._demonstrator = setup_of(task), build_score(task), kind.demonstrator
        self._reset = node.create_client(ResetEpisode, TWIN_RESET)
        self._stamps: dict[str, int] = {}
        self._bodies: dict[str, Pose] = {}
        self._bodies_scored = kind.bodies
        for name in kind.bodies:
            node.subscribe(body_topic(name), partial(self._on_body, name), BODIES)
        self._outcome = ""
        self._judging = False

    def prepare(self, start: NDArray[np.float64], seed: int, moving: float, label: str) -> None:
        """Open the gripper, go to the start, lay out the scene, grasp the object, and wait until all cameras show it.

        Args:
            start: ``(3,)`` tool position, m, base frame.
            seed: seed of the scene.
            moving: speed of the cup, m/s.
            label: label of the episode. A style of demonstration may begin elsewhere.
        """
        node, setup = self._node, self._setup
        node.move_to(start, DOWN, setup.open_width)
        node.hold(start, DOWN, setup.open_width, self._open, OPENING_S, "the opening")
        self._call_reset(seed, moving)
        shown_ns, width = node.now_ns() + SHOWN_NS, setup.open_width
        if setup.held is not None:
            low, high = setup.held
            width = CLOSED
            node.hold(start, DOWN, width, lambda: low < self._settled_width() < high, GRASPING_S, "the grasp")
        seen = "a sign of life of the twin's scene"
        node.hold(start, DOWN, width, lambda: self._shown_ns() > shown_ns, SHOWING_S, seen)
        self._go_on(seed, label)

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
                    return self._score.timeout
                self._node.progress(episode, elapsed, self._score.progress(self._bodies) if self._complete() else "")
                time.sleep(0.1)
        finally:
            self._judging = False

    def _shown_ns(self) -> int:
        """Return the stamp of the oldest pose of a body. For a scene without bodies only time counts."""
        if not self._bodies_scored:
            return self._node.now_ns()
        return min(self._stamps.values(), default=0)

    def _go_on(self, seed: int, style: str) -> None:
        """Bring the tool to the start of a style of demonstration, if it differs from that of the episode."""
        if self._demonstrator is None or style not in self._demonstrator.styles:
            return
        node, places = self._node, {name: position for name, (position, _) in self._bodies.items()}
        for position, width in self._demonstrator.preparation(style, seed, places):
            node.move_to(position, DOWN, width)
            node.hold(position, DOWN, width, lambda: not node.status().gripper_busy, GRASPING_S, "the fingers' rest")

    def _open(self) -> bool:
        return bool(self._node.status().gripper_width > self._setup.opened)

    def _settled_width(self) -> float:
        """Return the opening in m of a gripper at rest; NaN while it moves."""
        status = self._node.status()
        return float("nan") if status.gripper_busy else float(status.gripper_width)

    def _call_reset(self, seed: int, moving: float) -> None:
        done = threading.Event()
        self._node.wait(self._reset.service_is_ready, 10.0, "a sign of life of the twin's reset")
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
        outcome = self._score.update(
            self._stamps[name], self._bodies, self._node.tool_position(), float(self._node.status().gripper_width)
        )
        self._outcome = "" if outcome == PENDING else outcome

    def _complete(self) -> bool:
        """Whether the poses of all bodies have arrived, all with the same stamp."""
        return len(self._stamps) == len(self._bodies_scored) and len(set(self._stamps.values())) == 1


class RobotOperator:
    """Homes the arm, and asks a person for start and outcome, by services that ``bid operator`` calls."""

    def __init__(self, node: SequenceNode, task: Task) -> None:
        self._node = node
        self._setup = setup_of(task)
        self._started = threading.Event()
        self._outcome = ""
        node.create_service(Trigger, EPISODE_START, self._on_start)
        node.create_service(SetBool, EPISODE_OUTCOME, self._on_outcome)

    def prepare(self, start: NDArray[np.float64], seed: int, moving: float, label: str) -> None:
        """Open the gripper, go to the start, wait until the person has set up the scene, then grasp the object."""
        node, setup = self._node, self._setup
        node.move_to(start, DOWN, setup.open_width)
        self._started.clear()
        print(f"{setup.request}, then start the episode with: bid operator", flush=True)
        node.hold(start, DOWN, setup.open_width, self._started.is_set, PERSON_S, "the start")
        if setup.held is not None:
            node.hold(start, DOWN, CLOSED, self._grasped, GRASPING_S, "the grasp")

    def judge(self, episode: int, started: float, timeout_s: float) -> str:
        """Wait for the person's judgement. Without one the episode times out."""
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
        # The width of the person's object is unknown.
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
