"""Teleoperation by a SpaceMouse (3Dconnexion), read through pyspacemouse."""

from typing import Annotated, Any, Final

import numpy as np
from pydantic import Field

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import BidError
from bid_ros.core.extras import extra
from bid_ros.core.settings import Positive, settings
from bid_ros.core.task import Task
from bid_ros.teleop.base import AXES, Command, DeviceDescriptor
from bid_ros.teleop.human import Controller, HumanDevice

HELP: Final = """\
  cap               push, lift and turn it: the tool does the same (axes roll and pitch are locked unless
                    `locked` says otherwise). Its springs are the dead man's switch: let go, and the tool stops
  first button      gripper: close, open"""
REPORTS: Final = 64  # that are taken in one turn; more would mean that the device sends without end


@settings
class SpaceMouseSettings:
    """Settings of a SpaceMouse.

    Attributes:
        path: its device, such as ``/dev/hidraw3``; empty: the first one that is found.
        deadzone: share of the cap's way that counts as its rest.
        silence_s: s without a report after which the cap counts as let go. A hand on it is never that still.
    """

    path: str = ""
    deadzone: Annotated[float, Field(ge=0.02, le=0.5)] = 0.1
    silence_s: Positive = 0.5


class SpaceMouse(Controller):
    """A SpaceMouse.

    Args:
        options: how it feels.
        device: an open ``pyspacemouse`` device with ROS's axes: x forward, y left, z up.
    """

    def __init__(self, options: SpaceMouseSettings, device: Any) -> None:
        self._device, self._deadzone = device, options.deadzone
        self._silence_ns = round(options.silence_s * NANOSECONDS)
        self._seen, self._seen_ns = -1.0, -self._silence_ns
        self._was_down = True  # a button that is held at the start does not count

    def poll(self, now_ns: int) -> Command:
        """Take the reports since the last call. Raises BidError if the device is gone."""
        state = self._newest(now_ns)
        if now_ns - self._seen_ns >= self._silence_ns:
            return Command()
        values = np.array([getattr(state, axis) for axis in AXES])
        beyond = np.clip(np.abs(values) - self._deadzone, 0.0, None) / (1.0 - self._deadzone)
        twist = np.copysign(np.clip(beyond, 0.0, 1.0), values)
        down = bool(state.buttons and state.buttons[0])
        toggle, self._was_down = down and not self._was_down, down
        return Command(bool(twist.any()), twist, toggle=toggle)

    def begin(self, now_ns: int) -> None:
        """Forget the reports that waited: the newest of them may have been lost. Raises BidError if it is gone."""
        self._newest(now_ns)
        self._seen_ns, self._was_down = now_ns - self._silence_ns, True

    def close(self) -> None:
        """Release the device."""
        self._device.close()

    def _newest(self, now_ns: int) -> Any:
        for _ in range(REPORTS):
            try:
                state = self._device.read()
            except Exception as error:  # easyhid has a class of its own, and does not use it everywhere
                raise BidError(f"the SpaceMouse is gone ({error!r})") from error
            if state.t == self._seen:
                break
            self._seen, self._seen_ns = state.t, now_ns
        return state


def _open(options: SpaceMouseSettings) -> SpaceMouse:
    with extra("spacemouse", "a SpaceMouse"):
        try:
            import pyspacemouse
        except (OSError, AttributeError, RuntimeError) as error:  # as easyhid ends without its library
            raise BidError(
                f"a SpaceMouse needs the library hidapi ({error}); install it with: apt-get install libhidapi-hidraw0"
            ) from error
    axes = pyspacemouse.AxisConvention.ROS
    try:
        if options.path:
            return SpaceMouse(options, pyspacemouse.open_by_path(options.path, axis_convention=axes))
        return SpaceMouse(options, pyspacemouse.open(axis_convention=axes))
    except (OSError, RuntimeError, ValueError) as error:
        raise BidError(
            f"no SpaceMouse can be opened: {str(error).rstrip('.')}; plug one in, and let this user read /dev/hidraw*"
        ) from error


def _build(task: Task, options: SpaceMouseSettings) -> HumanDevice:
    return HumanDevice(task, lambda: _open(options))


DEVICE = DeviceDescriptor("spacemouse", _build, settings=SpaceMouseSettings, rate_hz=40.0, help=HELP)
