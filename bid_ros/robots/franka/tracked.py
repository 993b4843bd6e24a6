"""What franky-sim tells of a robot besides its joints: what is wanted, and rates of change, in one pass a step.

franky-sim has an object for each of 16 values, which asks the others that it depends on. Those took half of a step's
time. The numbers here are the same to the last bit. Rows are lists: seven numbers are too few for NumPy to be quicker.
"""

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import pinocchio
from franky_sim.base_simulator import InnerRobotState
from numpy.typing import NDArray

Row: TypeAlias = list[float]
Array: TypeAlias = NDArray[np.float64]

KEPT: Final = 0.95  # share of a rate that stays in a step, as franky-sim's filter
NEW: Final = 1.0 - KEPT


class Rate:
    """The rate of change of a row, by differences through franky-sim's low-pass filter.

    Attributes:
        value: per s; zeros until the row has changed once.
    """

    def __init__(self) -> None:
        self._last: Row | None = None
        self._time = 0.0
        self.value: Row = []

    def update(self, time: float, row: Row) -> None:
        """Take the row of a step at a time in s."""
        if self._last is None:
            self.value = [0.0] * len(row)
        else:
            dt = time - self._time
            changes = zip(self.value, row, self._last, strict=True)
            self.value = [KEPT * rate + NEW * ((now - before) / dt) for rate, now, before in changes]
        self._last, self._time = row, time


class PoseRate(Rate):
    """The twist of a pose in the same way: m/s and rad/s."""

    _pose: Any = None
    _twist: Array = np.zeros(6)

    def update(self, time: float, pose: Any) -> None:
        """Take the pose of a step at a time in s."""
        if self._pose is not None:
            dt, turn = time - self._time, pose.rotation @ self._pose.rotation.T
            moved = (pose.translation - self._pose.translation) / dt
            twist = np.concatenate([moved, pinocchio.log3(turn) / dt])
            self._twist = KEPT * self._twist + NEW * twist
        self.value = self._twist.tolist()
        self._pose, self._time = pose.copy(), time


class Component:
    """One value of the state. A controller may set it for the step to come; otherwise it follows from the others.

    Args:
        rate: of its changes, where that is told.

    Attributes:
        value: of the latest step.
        explicit: whether that was set.
    """

    def __init__(self, rate: Rate | None = None) -> None:
        self._rate, self._given, self._told = rate, None, True
        self.value: Any = None
        self.explicit = False

    @property
    def rate(self) -> Row:
        """Rate of change, per s."""
        return [] if self._rate is None else self._rate.value

    def set(self, _: float, value: Any, call_observers: bool = True) -> None:
        """Set the value of the step to come, as franky-sim's component does.

        Args:
            _: time of the step, which is the next one.
            value: array or pose.
            call_observers: whether the rate takes it; it does not where a command is only repeated.
        """
        self._given = value if isinstance(value, pinocchio.SE3) else np.asarray(value, float).tolist()
        self._told = call_observers

    def get(self, _: float) -> Any:
        """Return the value of the latest step; raises ValueError before the first one, as franky-sim does."""
        if self.value is None:
            raise ValueError("no step has been made yet")
        return self.value

    def finish(self, time: float, otherwise: Any) -> Any:
        """Pass a step and return the value: the one that was set, or the other."""
        self.explicit = self._given is not None
        self.value, self._given = self._given if self.explicit else otherwise, None
        if self._told and self._rate is not None:
            self._rate.update(time, self.value)
        self._told = True
        return self.value


class TrackedState(dict[str, Component]):
    """Everything that is followed from step to step, by the field of the state that it becomes.

    Args:
        pose: forward kinematics of the tool, of joints in rad.
        twist: of the tool, of joints in rad and their speeds in rad/s.
    """

    def __init__(self, pose: Callable[[Any], Any], twist: Callable[[Any, Any], Array]) -> None:
        rated = ("dq", "elbow_c", "delbow_c", "q_d", "dq_d", "tau_J", "O_dP_EE_d", "O_dP_EE_c")
        plain = ("ddelbow_c", "ddq_d", "dtau_J", "tau_J_d", "O_T_EE", "O_T_EE_d", "O_ddP_EE_c")
        super().__init__({name: Component(Rate()) for name in rated} | {name: Component() for name in plain})
        self["O_T_EE_c"] = Component(PoseRate())
        self._pose, self._twist = pose, twist

    def finish(self, time: float, inner: InnerRobotState) -> None:
        """Pass a step.

        Args:
            time: of the step, s.
            inner: joints after it.

        Raises:
            ValueError: if no torque was set for the step.
        """
        self["tau_J"].finish(time, list(inner.tau_j))
        self["dtau_J"].finish(time, self["tau_J"].rate)
        if self["tau_J_d"].finish(time, None) is None:
            raise ValueError("no torque was set for this step")
        self["dq"].finish(time, list(inner.dq))
        self._finish_joints(time, inner)
        self._finish_tool(time)

    def _finish_joints(self, time: float, inner: InnerRobotState) -> None:
        q, dq, elbow, turning = list(inner.q), self["dq"].value, self["elbow_c"], self["delbow_c"]
        elbow.finish(time, [q[2], math.copysign(1.0, q[3]) if q[3] else 0.0])
        turning.finish(time, [elbow.rate[0], elbow.rate[1] * 0.0] if elbow.explicit else [self["dq"].rate[2], 0.0])
        self["ddelbow_c"].finish(time, [dq[2], 0.0])
        if elbow.explicit:
            q[2] = elbow.value[0]
        joints, speeds = self["q_d"], self["dq_d"]
        joints.finish(time, q)
        speeds.finish(time, joints.rate if joints.explicit else dq)
        self["ddq_d"].finish(time, speeds.rate if speeds.explicit else self["dq"].rate)

    def _finish_tool(self, time: float) -> None:
        joints, speeds = np.array(self["q_d"].value), np.array(self["dq_d"].value)
        # franky-sim tells the tool of the wanted joints in both places: its two poses are one object.
        pose = self._pose(joints)
        self["O_T_EE"].finish(time, pose)
        self["O_T_EE_d"].finish(time, pose)
        path, wanted, commanded = self["O_T_EE_c"], self["O_dP_EE_d"], self["O_dP_EE_c"]
        wanted.finish(time, self._twist(joints, speeds).tolist())
        path.finish(time, pose)
        commanded.finish(time, path.rate if path.explicit else wanted.value)
        self["O_ddP_EE_c"].finish(time, commanded.rate if commanded.explicit else wanted.rate)
