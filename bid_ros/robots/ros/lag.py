"""Whether the joints go where they are sent: how far off, for how long."""

import math
import time

from bid_ros.core.rotation import Array
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.follower import SetpointFollower


class LagWatch:
    """Finds out that an arm has not followed for too long.

    Args:
        config: says how far, and for how long.
    """

    def __init__(self, config: RosConfig) -> None:
        self._config = config
        self._since_s = math.inf

    def forget(self) -> None:
        """Begin anew: the arm follows."""
        self._since_s = math.inf

    def problem(self, follower: SetpointFollower | None, joints: Array) -> str:
        """Return one sentence if the arm has not followed for too long; otherwise an empty text.

        Args:
            follower: what drives the arm; None: nothing does.
            joints: ``(n,)`` rad, measured.
        """
        lag, number = follower.lag(joints) if follower is not None else (0.0, 0)
        now_s = time.monotonic()
        self._since_s = min(self._since_s, now_s) if lag > self._config.max_lag else math.inf
        if now_s - self._since_s < self._config.lag_timeout_s:
            return ""
        what = f"joint '{self._config.joint_names[number]}' of the robot at {self._config.address} is {lag:.2f} rad"
        return f"{what} from where it was sent: look whether its controller is active and what holds the arm"
