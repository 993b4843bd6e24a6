"""Prepares and judges an episode: by physics in the twin, by a person at a robot."""

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

import numpy as np
from geometry_msgs.msg import PoseStamped
from numpy.typing import NDArray
from std_srvs.srv import SetBool, Trigger

from bid_msgs.srv import ResetEpisode
from bid_ros.core.poses import pose_arrays
from bid_ros.core.rotation import DOWN_6D
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.task import Task
from bid_ros.core.topics import (
    BODIES,
    EPISODE_DISCARD,
    EPISODE_OUTCOME,
    EPISODE_START,
    TWIN_RESET,
    body_topic,
)
from bid_ros.episodes.stops import LEFT, aborted
from bid_ros.nodes.sequence import SequenceNode
from bid_ros.recording.episodes import DISCARDED
from bid_ros.sim.twin import Pose
from bid_ros.tasks.base import PENDING
from bid_ros.tasks.registry import build_score, kind_of, setup_of

DOWN = np.array(DOWN_6D)
CLOSED = 0.0  # m, commanded to squeeze the object between the fingers
OPENING_S = 10.0  # s to open the gripper; the first time it may have to be activated before
GRASPING_S = 5.0
PERSON_S = 3600.0
LEAVE = "reset: the arm stays where it is; when nobody is within its reach, go on with: bid operator"
BEGIN = (
    "ready: the arm stays where it is; then the gripper opens, and the arm goes to its start by itself; when nobody is "
    "within its reach, let it with: bid operator"
)
SHOWING_S = 5.0
SHOW_S, CHECK_S = 0.1, 0.02  # between two looks at the outcome, and at who moves the arm
# After a reset, until all frames that a policy observes, the older ones too, show the new scene.
SHOWN_NS = 300_000_000


class Operator(ABC):
    """Prepares an episode: homes the arm through the safety node, and grasps. Then waits for the outcome.

    A person may end each episode, as a success, a failure, or one to discard.

    Args:
        node: moves the arm.
        task: task of the system.
        held: widths in m of a gripper at rest that holds what the episode begins with.
        correct: takes an outcome that a person gives when no episode runs; returns whether it was taken, or why not.
        person: a person starts each episode, a robot's first motion, and what comes after a stop.

    Attributes:
        started: a person has started the episode.
        again: set it, and the preparation ends without a start.
        awaited: the episode is prepared, and waits for a person who starts it.
    """

    def __init__(
        self,
        node: SequenceNode,
        task: Task,
        held: tuple[float, float] | None,
        correct: Callable[[str], tuple[bool, str]] | None = None,
        person: bool = False,
    ) -> None:
        self._node, self._held = node, held
        self._correct = correct or (lambda outcome: (False, "no episode runs"))
        self.started, self.again = threading.Event(), threading.Event()
        self.awaited, self._said = False, ""
        self._setup = setup_of(task)
        self._timeout = "timeout"
        self._outcome: str | None = None  # while nobody judges
        if person:
            node.serve(Trigger, EPISODE_START, self._on_start)
        node.serve(SetBool, EPISODE_OUTCOME, self._on_outcome)
        node.serve(Trigger, EPISODE_DISCARD, lambda _: self._end(DISCARDED))

    def prepare(self, start: NDArray[np.float64], seed: int, moving: float, label: str) -> None:
        """Open the gripper, go to the start, have the scene laid out, grasp the object. Blocks.

        Args:
            start: ``(3,)`` tool position, m, base frame.
            seed: seed of the scene.
            moving: target speed, m/s.
            label: label of the episode. A style of demonstration may begin elsewhere.
        """
        self._node.move_to(start, DOWN, self._setup.open_width)
        self._lay_out(start, seed, moving)
        if self._setup.held is not None and not self.again.is_set():
            self._node.hold(start, DOWN, CLOSED, self._grasped, GRASPING_S, "the grasp")

    def judge(self, started: float, timeout_s: float, show: Callable[[float, str], None]) -> str:
        """Block until the episode is over. Return its outcome: success, timeout or, for example, dropped.

        Args:
            started: steady time of the start in s.
            timeout_s: longest duration in s.
            show: takes the time since the start in s, and a word about the scene, ten times a second.
        """
        self._outcome = ""
        try:
            while True:
                elapsed = time.monotonic() - started
                self._node.check()
                if self._outcome:
                    return self._outcome
                if elapsed > timeout_s:
                    return self._timeout
                show(elapsed, self._progress())
                for _ in range(round(SHOW_S / CHECK_S)):
                    time.sleep(CHECK_S)
                    self._node.check()
        finally:
            self._outcome = None

    def _on_outcome(self, request: SetBool.Request) -> tuple[bool, str]:
        return self._end("success" if request.data else "failure")

    def _end(self, outcome: str) -> tuple[bool, str]:
        """End the running episode as a person says; what has ended before stays as it is."""
        if self._outcome is None:
            return self._correct(outcome)
        self._outcome = self._outcome or outcome
        return True, ""

    def await_leave(self, stopped: bool) -> None:
        """Block until a person lets the arm move by itself. Nobody holds the arm meanwhile.

        A reset only says that what stopped the arm is gone, and the start of a run only that its nodes are there.
        Neither must set a robot in motion.

        Args:
            stopped: a stop holds it, not the beginning of the run.

        Raises:
            EpisodeStopped: as :meth:`bid_ros.nodes.sequence.SequenceNode.wait`.
        """
        self.started.clear()
        self.awaited, self._said = True, LEFT
        print(LEAVE if stopped else BEGIN, flush=True)
        self._node.tell()
        try:
            self._node.wait(self.started.is_set, PERSON_S, "a person's leave to move")
        finally:
            self.awaited, self._said = False, ""

    def _await_start(self, position: NDArray[np.float64], width: float, asked: str) -> None:
        """Hold the tool until a person starts the episode, or wants another one again."""
        self.started.clear()
        self.awaited = True
        print(asked, flush=True)
        self._node.tell()
        try:
            begun = lambda: self.started.is_set() or self.again.is_set()  # noqa: E731
            self._node.hold(position, DOWN, width, begun, PERSON_S, "the start")
        finally:
            self.awaited = False

    @property
    def awaits(self) -> str:
        """What a person must give: ``start`` of the episode, ``leave`` to move by itself; empty: nothing."""
        return ("leave" if self._said else "start") if self.awaited else ""

    def _on_start(self, _: Trigger.Request) -> tuple[bool, str]:
        if not self.awaited:
            return False, "no episode waits for its start"
        self.started.set()
        return True, self._said

    @abstractmethod
    def _lay_out(self, start: NDArray[np.float64], seed: int, moving: float) -> None:
        """Have the scene laid out, with the tool at the start."""

    def _progress(self) -> str:
        return ""

    def _grasped(self) -> bool:
        low, high = self._held or (-math.inf, self._setup.opened)
        status = self._node.status
        return bool(not status.gripper_busy and low < status.gripper_width < high)


class TwinOperator(Operator):
    """Lets the twin lay out the scene, and scores from ground truth.

    Args:
        node, task, correct: as :class:`Operator`.
        person: a person starts each episode and says how it ended; physics does not.
    """

    def __init__(
        self,
        node: SequenceNode,
        task: Task,
        correct: Callable[[str], tuple[bool, str]] | None = None,
        person: bool = False,
    ) -> None:
        super().__init__(node, task, setup_of(task).held, correct, person)
        self._person = person
        kind = kind_of(task)
        self._score, self._demonstrator, self._bodies_scored = build_score(task), kind.demonstrator, kind.bodies
        self._timeout = self._score.timeout
        self._reset = node.create_client(ResetEpisode, TWIN_RESET)
        self._laid_out_ns = 0
        self._stamps: dict[str, int] = {}
        self._bodies: dict[str, Pose] = {}
        for name in kind.bodies:
            node.subscribe(body_topic(name), partial(self._on_body, name), BODIES, patient=True)

    def prepare(self, start: NDArray[np.float64], seed: int, moving: float, label: str) -> None:
        """Prepare. Wait until all cameras show the scene. Go to the start of a style, if the label is one."""
        super().prepare(start, seed, moving, label)
        node, seen = self._node, "a sign of life of the twin's scene"
        width = self._setup.open_width if self._setup.held is None else CLOSED
        node.hold(start, DOWN, width, lambda: self._shown_ns() > self._laid_out_ns + SHOWN_NS, SHOWING_S, seen)
        if self._person:
            self._await_start(start, width, "ready: start the episode")
            return
        if self._demonstrator is None or label not in self._demonstrator.styles:
            return
        places = {name: position for name, (position, _) in self._bodies.items()}
        for position, opening in self._demonstrator.preparation(label, seed, places):
            node.move_to(position, DOWN, opening)
            node.hold(position, DOWN, opening, lambda: not node.status.gripper_busy, GRASPING_S, "the fingers' rest")

    def judge(self, started: float, timeout_s: float, show: Callable[[float, str], None]) -> str:
        """Score from physics while the policy acts."""
        self._score.reset()
        return super().judge(started, timeout_s, show)

    def _lay_out(self, start: NDArray[np.float64], seed: int, moving: float) -> None:
        node, width, opened = self._node, self._setup.open_width, self._setup.opened
        if node.task.columns("gripper") is not None:  # otherwise nobody can open it
            node.hold(start, DOWN, width, lambda: node.status.gripper_width > opened, OPENING_S, "the opening")
        done = threading.Event()
        node.wait(self._reset.service_is_ready, 10.0, "a sign of life of the twin's reset")
        future = self._reset.call_async(ResetEpisode.Request(seed=seed, target_speed=moving))
        future.add_done_callback(lambda _: done.set())
        node.wait(done.is_set, 10.0, "the reset of the twin")
        response = future.result()
        if not response.success:
            raise aborted(f"the twin was not reset: {response.message}", "reset")
        self._laid_out_ns = node.now_ns()

    def _shown_ns(self) -> int:
        """Return the stamp of the oldest pose of a body. For a scene without bodies only time counts."""
        return min(self._stamps.values(), default=0) if self._bodies_scored else self._node.now_ns()

    def _progress(self) -> str:
        return self._score.progress(self._bodies) if self._complete() else ""

    def _on_body(self, name: str, message: PoseStamped) -> None:
        self._stamps[name], self._bodies[name] = stamp_ns(message), pose_arrays(message.pose)
        if self._outcome == "" and not self._person and self._complete():
            tool, width = self._node.tool[0], float(self._node.status.gripper_width)
            outcome = self._score.update(self._stamps[name], self._bodies, tool, width)
            if outcome != PENDING:
                self._outcome = outcome

    def _complete(self) -> bool:
        """Whether the poses of all bodies have arrived, all with the same stamp."""
        return len(self._stamps) == len(self._bodies_scored) and len(set(self._stamps.values())) == 1


class RobotOperator(Operator):
    """Asks a person for start and outcome, by services that ``bid operator`` calls. An object's width is unknown."""

    def __init__(
        self, node: SequenceNode, task: Task, correct: Callable[[str], tuple[bool, str]] | None = None
    ) -> None:
        super().__init__(node, task, None, correct, person=True)

    def _lay_out(self, start: NDArray[np.float64], seed: int, moving: float) -> None:
        asked = f"{self._setup.request}, then start the episode with: bid operator"
        self._await_start(start, self._setup.open_width, asked)
