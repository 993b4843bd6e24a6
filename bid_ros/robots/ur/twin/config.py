"""Which controller a UR twin is."""

import ipaddress
from dataclasses import dataclass
from typing import Final

from bid_ros.core.checks import check_range
from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.kinematics import UR5, UR5E

RATES: Final = {"e-series": 500, "cb3": 125}
ARMS: Final = {"e-series": UR5E, "cb3": UR5}
VERSIONS: Final = {"e-series": (5, 11, 0, 108249), "cb3": (3, 15, 0, 106331)}


@dataclass(frozen=True)
class UrControllerConfig:
    """Which controller the twin is.

    Attributes:
        address: IPv4 address of this computer to serve on; several controllers take one of 127.0.0.x each.
        generation: ``e-series`` (500 Hz) or ``cb3`` (125 Hz).
        version: of the controller software, four numbers; empty: a usual one of the generation.
        remote_control: whether remote control is switched on at the pendant.
        unlock_delay_s: s after a protective stop in which it cannot be released; a robot's is 5 s.

    Raises:
        ArmError: a value is not valid.
    """

    address: str = "127.0.0.1"
    generation: str = "e-series"
    version: tuple[int, ...] = ()
    remote_control: bool = True
    unlock_delay_s: float = 5.0

    def __post_init__(self) -> None:
        try:
            ipaddress.IPv4Address(self.address)
        except ValueError as error:
            raise ArmError(f"UR twin: address is '{self.address}'; valid is an IPv4 address") from error
        if self.generation not in RATES:
            raise ArmError(f"UR twin: generation is '{self.generation}'; valid are {', '.join(RATES)}")
        if not self.version:
            object.__setattr__(self, "version", VERSIONS[self.generation])
        if len(self.version) != 4 or any(not 0 <= number < 1 << 32 for number in self.version):
            raise ArmError(f"UR twin: version is {self.version}; valid are four numbers from 0 on")
        check_range("UR twin", "unlock_delay_s", self.unlock_delay_s, 0.0, 60.0, ArmError, "s")

    @property
    def rate(self) -> int:
        """Hz of the control cycle."""
        return RATES[self.generation]

    @property
    def e_series(self) -> bool:
        """Whether it is an e-Series, which knows local and remote control and has a force sensor."""
        return self.generation == "e-series"
