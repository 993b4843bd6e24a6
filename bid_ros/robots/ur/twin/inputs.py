"""What RTDE clients write into the controller: registers, the speed slider, outputs of the control box."""

from collections.abc import Sequence
from typing import Final

from bid_ros.robots.ur.twin.recipes import INPUT_TYPES, FieldTable

# Group of digital outputs -> place of its first bit in the word that RTDE reports.
DIGITAL_GROUPS: Final = {"standard": 0, "configurable": 8, "tool": 16}


class Inputs(FieldTable):
    """The input fields, who may write each of them, and what a write sets off at once.

    A mask counts in the package that carries it, not in the cycle after: two packages of one cycle may switch two
    outputs.
    """

    def __init__(self) -> None:
        super().__init__(INPUT_TYPES)
        self._owners: dict[str, object] = {}
        self.writes = dict.fromkeys(INPUT_TYPES, 0)
        self.digital_outputs = 0
        self.analog_outputs = [0.0, 0.0]
        self.analog_output_types = 0  # a bit for each: 0 a current, 1 a voltage
        self.speed_slider = 1.0

    def taken(self, name: str, client: object) -> bool:
        """Return whether another client than ``client`` writes the field."""
        return self._owners.get(name, client) is not client

    def claim(self, names: Sequence[str], client: object) -> None:
        """Make ``client`` the only one that may write the fields."""
        self._owners.update(dict.fromkeys(names, client))

    def release(self, client: object) -> None:
        """Free every field of ``client``; the values stay."""
        self._owners = {name: owner for name, owner in self._owners.items() if owner is not client}

    def written(self, names: Sequence[str]) -> None:
        """Count a write of each field, and obey the masks among them."""
        for name in names:
            self.writes[name] += 1
            if name.endswith("_mask"):
                self._obey(name)

    def _obey(self, mask_name: str) -> None:
        mask = int(self.get(mask_name))
        if mask_name == "speed_slider_mask":
            if mask & 1:
                self.speed_slider = min(1.0, max(0.0, self.get("speed_slider_fraction")))
        elif mask_name == "standard_analog_output_mask":
            types = int(self.get("standard_analog_output_type"))
            self.analog_output_types = (self.analog_output_types & ~mask | types & mask) & 0b11
            for number in (0, 1):
                if mask >> number & 1:
                    self.analog_outputs[number] = min(1.0, max(0.0, self.get(f"standard_analog_output_{number}")))
        else:
            shift = DIGITAL_GROUPS[mask_name.partition("_")[0]]
            wanted = int(self.get(mask_name.removesuffix("_mask")))
            self.digital_outputs = self.digital_outputs & ~(mask << shift) | (wanted & mask) << shift
