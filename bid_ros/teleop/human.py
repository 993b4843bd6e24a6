"""A person at the controls: joins a controller, the steering and the drive into a teleoperation device."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.errors import BidError
from bid_ros.core.task import Task
from bid_ros.tasks.registry import setup_of
from bid_ros.teleop.base import Command, EpisodeStart, Steering, TeleopDevice
from bid_ros.teleop.drive import Drive

REOPEN_NS: Final = NANOSECONDS  # between two attempts to open a device that is gone


class Controller(ABC):
    """What a person holds: keyboard, gamepad, page."""

    @abstractmethod
    def poll(self, now_ns: int) -> Command:
        """Return what is asked for now, without waiting. ``now_ns`` is steady time. Raises BidError if it is gone."""

    def begin(self, now_ns: int) -> None:
        """Forget what was asked for before an episode. Raises BidError if the device is gone."""
        self.poll(now_ns)

    def hear(self, topic: str, message: Any, now_ns: int) -> None:
        """Take a message of a topic that the device listens to."""
        return

    def close(self) -> None:
        """Release the device."""
        return


class TopicController(Controller):
    """A controller whose state arrives on topics. Silence of one means that nobody knows what it says.

    Args:
        silence_s: s after which a topic's newest message no longer counts.
    """

    def __init__(self, silence_s: float) -> None:
        self._silence_ns = round(silence_s * NANOSECONDS)
        self._heard: dict[str, tuple[int, Any]] = {}

    def hear(self, topic: str, message: Any, now_ns: int) -> None:
        """Keep the newest message of a topic."""
        self._heard[topic] = (now_ns, message)

    def begin(self, now_ns: int) -> None:
        """Forget the messages before."""
        self._heard.clear()

    def newest(self, topic: str, now_ns: int) -> Any:
        """Return the newest message of a topic; None if it is silent."""
        heard_ns, message = self._heard.get(topic, (now_ns - self._silence_ns - 1, None))
        return message if now_ns - heard_ns <= self._silence_ns else None


class HumanDevice(TeleopDevice):
    """Drives the arm as a person asks. A device that is gone stops the arm, and is opened again when it is back.

    Args:
        task: task of the arm.
        open_controller: opens the controller; raises BidError if it is not there.
        reopens: whether a controller that is gone may be opened again.
        clock: steady time in ns: what a person asks for must not last longer because the wall clock is set back.

    Attributes:
        problem: why nobody can drive now, one sentence; empty if somebody can.
        held: whether the dead man's switch is held; None: the device is silent or gone.

    Raises:
        BidError: the controller cannot be opened.
    """

    def __init__(
        self,
        task: Task,
        open_controller: Callable[[], Controller],
        reopens: bool = True,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._drive, self._open = Drive(task), open_controller
        self._reopens, self._clock = reopens, clock
        self._controller: Controller | None = open_controller()
        self._opened_ns = 0
        self._steering = Steering()
        held = setup_of(task).held is not None
        self._start_width = task.limits.gripper_min if held else task.limits.gripper_max
        self._driving = False
        self._mark = self._note = ""
        self.problem = ""
        self.held: bool | None = None

    def steer(self, steering: Steering) -> None:
        """Take new settings, from the next chunk on."""
        self._steering = steering

    def begin(self, start: EpisodeStart) -> None:
        """Take the arm where it is."""
        width = self._start_width if start.width is None else start.width
        self._drive.hold(start.tool, start.rotation, width, start.now_ns)
        self._asked(lambda controller, now_ns: controller.begin(now_ns))
        self._driving, self._mark, self._note = True, "", ""

    def chunk_at(self, now_ns: int, steps: int, dt_ns: int) -> ActionChunk | None:
        """Return what the person asks for now. With the dead man's switch open, or without a device, the tool holds."""
        command = self._command()
        return self._drive.chunk(command, self._steering, now_ns, steps, dt_ns) if self._driving else None

    def look(self) -> None:
        """Ask the controller, and keep what does not move the arm."""
        self._command()

    def take_mark(self) -> str:
        """Return how the person ended the episode since the last call; empty: it goes on."""
        mark, self._mark = self._mark, ""
        return mark

    def take_note(self) -> str:
        """Return what the person said since the last call; empty: nothing."""
        note, self._note = self._note, ""
        return note

    def hear(self, topic: str, message: Any, now_ns: int) -> None:
        """Pass a message on to the controller."""
        if self._controller is not None:
            self._controller.hear(topic, message, self._clock())

    def end(self) -> None:
        """Let go of the arm."""
        self._driving = False

    def close(self) -> None:
        """Release the controller."""
        if self._controller is not None:
            self._controller.close()

    def _command(self) -> Command:
        command = self._asked(lambda controller, steady_ns: controller.poll(steady_ns)) or Command(heard=False)
        self.held = command.live if command.heard else None
        self._mark, self._note = command.mark or self._mark, command.note or self._note
        return command

    def _asked(self, ask: Callable[[Controller, int], Command | None]) -> Command | None:
        """Ask the controller, which is opened again if it was gone. None: nobody answers."""
        now_ns = self._clock()
        try:
            if self._controller is None:
                if not self._reopens or now_ns - self._opened_ns < REOPEN_NS:
                    return None
                self._opened_ns = now_ns
                self._controller = self._open()
                self._controller.begin(now_ns)
            answer = ask(self._controller, now_ns)
        except BidError as error:
            self.problem = str(error)
            if self._controller is not None:
                with suppress(Exception):  # of a library: the device is gone anyway
                    self._controller.close()
            self._controller, self._opened_ns = None, now_ns
            return None
        self.problem = ""
        return answer
