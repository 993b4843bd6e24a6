"""What the rest of bid_ros needs to know of a task, beside its task file."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from bid_ros.control.planned import PlannedTeleoperator
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import BidError, TaskError
from bid_ros.core.task import Task
from bid_ros.sim.twin import Array, Pose, TwinScene

PENDING: Final = "pending"
NOT_JUDGED: Final = "not judged"
MAX_SPEED: Final = 0.10  # m/s, of what moves in a scene
STEP_NS: Final = 10_000_000  # of every stage


@dataclass(frozen=True)
class EpisodeSetup:
    """How the gripper begins an episode.

    Attributes:
        open_width: asked for until the scene is laid out, m.
        opened: m; a wider gripper counts as open, as it stops a little before the full width.
        held: widths in m between which the fingers hold what the episode begins with; None: it begins with an open
            gripper.
        request: what a person at the robot is asked to do before the start.
    """

    open_width: float
    opened: float
    held: tuple[float, float] | None
    request: str


class Score(ABC):
    """Judges one episode from the states of the twin, by the rules of its task.

    Args:
        hold_s: a state counts once it has lasted that long without interruption. The first outcome stays until
            :meth:`reset`.

    Attributes:
        outcome: ``pending``, ``success`` or ``dropped``.
        timeout: outcome of an episode whose time is over.
        moved: names of a body and of the one where it belongs, for :meth:`progress`; empty: nothing is said.
    """

    timeout = "timeout"
    moved: tuple[str, ...] = ()

    def __init__(self, hold_s: float = 0.3) -> None:
        self._hold_s = hold_s
        self.reset()

    def reset(self) -> None:
        """Forget everything, as at the start of an episode."""
        self.outcome = self._candidate = PENDING
        self._since_ns = 0

    def update(self, now_ns: int, bodies: Mapping[str, Pose], tool: Array, gripper_width: float) -> str:
        """Judge one state and return the outcome so far.

        Args:
            now_ns: time of the state, not decreasing.
            bodies: pose of every body: position ``(3,)`` m and quaternion ``(4,)`` xyzw, base frame.
            tool: ``(3,)`` m, base frame.
            gripper_width: m.
        """
        candidate = self.judge(bodies, tool, gripper_width)
        if candidate != self._candidate:
            self._candidate, self._since_ns = candidate, now_ns
        if self.outcome == PENDING and now_ns - self._since_ns >= self._hold_s * NANOSECONDS:
            self.outcome = candidate
        return self.outcome

    @abstractmethod
    def judge(self, bodies: Mapping[str, Pose], tool: Array, gripper_width: float) -> str:
        """Return what one state is, whatever was before; arguments as :meth:`update`."""

    def progress(self, bodies: Mapping[str, Pose]) -> str:
        """Return how far the episode is, in a few words for a person."""
        if not self.moved:
            return ""
        one, other = (bodies[name][0] for name in self.moved)
        return f"{' to '.join(self.moved)} {1e3 * float(np.linalg.norm((one - other)[:2])):4.0f} mm"


class Unjudged(Score):
    """The judge of a task that only a person could judge: its episodes end with their time."""

    timeout = NOT_JUDGED

    def judge(self, bodies: Mapping[str, Pose], tool: Array, gripper_width: float) -> str:
        """Return ``pending``."""
        return PENDING


class Stage(Protocol):
    """What a rehearsal plays on: arm, gripper and scene, stepped in lockstep. One thread only, as they render."""

    @property
    def measured(self) -> Pose:
        """Where the tool is: position ``(3,)`` m and quaternion ``(4,)`` xyzw, base frame."""

    @property
    def width(self) -> float:
        """Opening of the gripper, m."""

    @property
    def bodies(self) -> Mapping[str, Array]:
        """Positions ``(3,)`` m, base frame, of what a demonstration looks at."""

    def begin(self, seed: int, start: Array, speed: float) -> None:
        """Lay out the episode of a seed, the tool at ``start`` ``(3,)`` m and pointing down, a target at ``speed`` m/s.

        Raises:
            TaskError: the seed or the speed is not valid.
            ArmError: the arm does not reach the start.
        """

    def images(self) -> Mapping[str, NDArray[np.uint8]]:
        """Return one ``(height, width, 3)`` rgb8 image per camera of what is now."""

    def step(self, position: Array, quaternion: Array, gripper: float | None) -> str:
        """Pass ``STEP_NS`` after which the tool is at a pose (m, xyzw); return the episode's outcome or nothing.

        Args:
            position, quaternion: ``(3,)``, ``(4,)``, base frame.
            gripper: width asked for last, m; None if none was.

        Raises:
            ArmError: the arm does not reach the pose.
        """

    def give_up(self) -> str:
        """Return the outcome of an episode whose time is over."""

    def close(self) -> None:
        """Free the renderer."""


def check_episode(seed: int, speed: float, moves: str) -> None:
    """Raise TaskError unless there is an episode of this seed in which ``moves`` has this speed, m/s; 0: it stands."""
    if seed < 0:
        raise TaskError(f"episode seed is {seed}; valid is 0 or more")
    if not 0.0 <= speed <= MAX_SPEED:
        raise TaskError(f"{moves} speed is {speed} m/s; valid is 0 (static) to {MAX_SPEED}")


@dataclass(frozen=True)
class Style:
    """One way to demonstrate a task.

    Attributes:
        count: demonstrations of it that a data set has unless asked otherwise.
        first_seed: of its first episode.
    """

    count: int
    first_seed: int


@dataclass(frozen=True)
class Demonstrator:
    """How a task is demonstrated by a script.

    Attributes:
        styles: of its demonstrations, by name.
        bodies: names of what the teleoperator looks at before it plans.
        plan: from style, seed, tool position ``(3,)`` m, positions of the bodies by name ``(3,)`` m, both base frame,
            and ROS time in ns to a teleoperator with a plan that begins then. Raises BidError for a style, seed or
            position that is not valid.
        preparation: from style, seed and positions of the bodies to where the tool, which points down, is brought
            after the scene was laid out, and before the demonstration begins: positions ``(3,)`` m and the gripper's
            widths m, one after the other; by default nothing, as the demonstration begins where the episode does.
    """

    styles: Mapping[str, Style]
    bodies: tuple[str, ...]
    plan: Callable[[str, int, Array, Mapping[str, Array], int], PlannedTeleoperator]
    preparation: Callable[[str, int, Mapping[str, Array]], Sequence[tuple[Array, float]]] = lambda *_: ()

    def check_style(self, style: str) -> None:
        """Raise BidError unless there are demonstrations of this style."""
        if style not in self.styles:
            raise BidError(f"demonstration style is '{style}'; valid are {', '.join(self.styles)}")


@dataclass(frozen=True)
class TaskDescriptor:
    """A kind of task, which a task file names as ``kind``. Its folder has one of these as ``TASK``.

    Attributes:
        name: for example ``placing``.
        setup: how an episode begins; None: with an open gripper.
        scene: from a task to what stands around the robot in its twin.
        bodies: names of what the score needs to know the pose of, and the scene has. Their ground truth is recorded.
        moves: what moves in the scene, the disturbance: ``cup`` in a table of cup speeds.
        score: makes a judge of episodes in the twin; by default nobody judges there.
        stage: from width and height of the images in px, the names of the cameras and the gripper's thresholds to
            what a rehearsal plays on; None: the task cannot be rehearsed.
        demonstrator: how it is demonstrated by a script; None: only by a person.
        of: from a task to its kind as its file describes it; None: all tasks of the kind are alike.
    """

    name: str
    scene: Callable[[Task], TwinScene]
    setup: EpisodeSetup | None = None
    bodies: tuple[str, ...] = ()
    moves: str = "target"
    score: Callable[[], Score] = Unjudged
    stage: Callable[..., Stage] | None = None
    demonstrator: Demonstrator | None = None
    of: Callable[[Task], "TaskDescriptor"] | None = None
