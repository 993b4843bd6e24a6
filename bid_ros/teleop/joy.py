"""Teleoperation by a gamepad whose state arrives on a ROS topic, as ``joy_node`` publishes it."""

from typing import Any, Final

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.settings import Positive, settings
from bid_ros.core.task import Task
from bid_ros.teleop.base import DeviceDescriptor
from bid_ros.teleop.command import Command
from bid_ros.teleop.human import Controller, HumanDevice
from bid_ros.teleop.pad import HELP, Pad, PadSettings

# Places in sensor_msgs/Joy of joy_node's gamepads; forward and left are positive there.
AXES: Final = {"left_x": 0, "left_y": 1, "right_x": 3, "right_y": 4, "hat_x": 6, "hat_y": 7}
BUTTONS: Final = {"south": 0, "east": 1, "north": 3, "left_bumper": 4, "select": 6, "start": 7}


@settings
class JoySettings(PadSettings):
    """Settings of a gamepad on a topic.

    Attributes:
        topic: of ``sensor_msgs/msg/Joy``.
        silence_s: s without a message after which the dead man's switch counts as open.
    """

    topic: str = "joy"
    silence_s: Positive = 0.25


class Joy(Controller):
    """A gamepad on a topic. Silence opens the dead man's switch."""

    def __init__(self, options: JoySettings) -> None:
        self._pad, self._silence_ns = Pad(options), round(options.silence_s * NANOSECONDS)
        self._heard: tuple[int, Any] | None = None

    def hear(self, topic: str, message: Any, now_ns: int) -> None:
        """Take a ``sensor_msgs/Joy``. One with too few axes or buttons counts as nothing pressed."""
        self._heard = (now_ns, message)

    def begin(self, now_ns: int) -> None:
        """Forget the messages before."""
        self._heard = None

    def poll(self, now_ns: int) -> Command:
        """Return what the newest message asks for."""
        if self._heard is None or now_ns - self._heard[0] > self._silence_ns:
            return Command(heard=False)
        axes, buttons = self._heard[1].axes, self._heard[1].buttons
        pressed = {name: at < len(buttons) and bool(buttons[at]) for name, at in BUTTONS.items()}
        return self._pad.command({name: _value(axes, at) for name, at in AXES.items()}, pressed)


def _value(axes: Any, at: int) -> float:
    value = float(axes[at]) if at < len(axes) else 0.0
    return value if abs(value) <= 1.0 else 0.0  # NaN too


def _build(task: Task, options: JoySettings) -> HumanDevice:
    return HumanDevice(task, lambda: Joy(options))


DEVICE = DeviceDescriptor(
    "joy",
    _build,
    settings=JoySettings,
    topics=lambda task, options: {options.topic: "sensor_msgs/msg/Joy"},
    rate_hz=40.0,
    help=HELP,
)
