"""The fields a UR controller exchanges over RTDE, recipes, and what clients write.

A recipe is the fields that one client asked for, in its order. All values of one direction lie in one flat list, each
field at a fixed place. A recipe is then an index and one precompiled ``struct``, so that packing 150 numbers 500 times
a second costs next to nothing.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Final, Self

from bid_ros.sim.net import Misbehaviour

REGISTERS: Final = 48  # of integers and of doubles, each direction; 0-23 lower range, 24-47 upper range
NOT_FOUND: Final = "NOT_FOUND"
IN_USE: Final = "IN_USE"
MAX_RECIPES: Final = 255

# Type name -> struct format of one field, big-endian.
FORMATS: Final = {
    "BOOL": "?",
    "UINT8": "B",
    "UINT32": "I",
    "UINT64": "Q",
    "INT32": "i",
    "DOUBLE": "d",
    "VECTOR3D": "3d",
    "VECTOR6D": "6d",
    "VECTOR6INT32": "6i",
    "VECTOR6UINT32": "6I",
}
# Type name -> how many numbers one field holds.
COUNTS: Final = {name: int(text[:-1] or 1) for name, text in FORMATS.items()}
# What clients write, a controller also reports.
INPUT_REGISTERS: Final[Mapping[str, str]] = {
    **{f"input_int_register_{number}": "INT32" for number in range(REGISTERS)},
    **{f"input_double_register_{number}": "DOUBLE" for number in range(REGISTERS)},
}

TOOL_OUTPUT_MODES: Final = ("tool_output_mode", "tool_digital_output0_mode", "tool_digital_output1_mode")
OUTPUT_TYPES: Final[Mapping[str, str]] = {
    "timestamp": "DOUBLE",
    **{f"target_{name}": "VECTOR6D" for name in ("q", "qd", "qdd", "current", "moment")},
    **{f"actual_{name}": "VECTOR6D" for name in ("q", "qd", "current")},
    "joint_control_output": "VECTOR6D",
    **{f"actual_TCP_{name}": "VECTOR6D" for name in ("pose", "speed", "force")},
    **{f"target_TCP_{name}": "VECTOR6D" for name in ("pose", "speed")},
    "tcp_offset": "VECTOR6D",
    "actual_digital_input_bits": "UINT64",
    "joint_temperatures": "VECTOR6D",
    "actual_execution_time": "DOUBLE",
    "robot_mode": "INT32",
    "joint_mode": "VECTOR6INT32",
    "safety_mode": "INT32",
    "safety_status": "INT32",
    "actual_tool_accelerometer": "VECTOR3D",
    **dict.fromkeys(("speed_scaling", "target_speed_fraction", "actual_momentum"), "DOUBLE"),
    **dict.fromkeys(("actual_main_voltage", "actual_robot_voltage", "actual_robot_current"), "DOUBLE"),
    "actual_joint_voltage": "VECTOR6D",
    "actual_digital_output_bits": "UINT64",
    "runtime_state": "UINT32",
    **{f"standard_analog_{way}{number}": "DOUBLE" for way in ("input", "output") for number in (0, 1)},
    **dict.fromkeys(("analog_io_types", "tool_mode", "tool_analog_input_types"), "UINT32"),
    **dict.fromkeys(("tool_analog_input0", "tool_analog_input1", "tool_output_current", "tool_temperature"), "DOUBLE"),
    "tool_output_voltage": "INT32",
    **dict.fromkeys(TOOL_OUTPUT_MODES, "UINT8"),
    "joint_position_deviation_ratio": "DOUBLE",
    "robot_status_bits": "UINT32",
    "safety_status_bits": "UINT32",
    "ft_raw_wrench": "VECTOR6D",
    "payload": "DOUBLE",
    "payload_cog": "VECTOR3D",
    "payload_inertia": "VECTOR6D",
    **{f"output_int_register_{number}": "INT32" for number in range(REGISTERS)},
    **{f"output_double_register_{number}": "DOUBLE" for number in range(REGISTERS)},
    **INPUT_REGISTERS,
}
# Those of these that only the e-Series has.
E_SERIES_OUTPUTS: Final = frozenset({"ft_raw_wrench", *TOOL_OUTPUT_MODES})

INPUT_TYPES: Final[Mapping[str, str]] = {
    **INPUT_REGISTERS,
    "speed_slider_mask": "UINT32",
    "speed_slider_fraction": "DOUBLE",
    **{
        f"{group}_digital_output{suffix}": "UINT8"
        for group in ("standard", "configurable", "tool")
        for suffix in ("_mask", "")
    },
    "standard_analog_output_mask": "UINT8",
    "standard_analog_output_type": "UINT8",
    "standard_analog_output_0": "DOUBLE",
    "standard_analog_output_1": "DOUBLE",
    "external_force_torque": "VECTOR6D",
}
# Group of digital outputs -> place of its first bit in the word that RTDE reports.
DIGITAL_GROUPS: Final = {"standard": 0, "configurable": 8, "tool": 16}


class FieldTable:
    """Named fields of given types in one flat list of numbers.

    Args:
        types: name -> type name, in the order of the list.
    """

    def __init__(self, types: Mapping[str, str]) -> None:
        self.types = dict(types)
        self.places: dict[str, slice] = {}
        start = 0
        for name, kind in types.items():
            self.places[name] = slice(start, start + COUNTS[kind])
            start += COUNTS[kind]
        self.values: list[float] = [0] * start

    def set(self, name: str, *numbers: float) -> None:
        """Set a field to as many numbers as its type holds; ValueError if they are more or fewer."""
        place = self.places[name]
        if len(numbers) != place.stop - place.start:
            raise ValueError(f"field {name}: {len(numbers)} numbers; valid are {place.stop - place.start}")
        self.values[place] = numbers

    def get(self, name: str) -> float:
        """Return the first number of a field."""
        return self.values[int(self.places[name].start)]

    def reply(self, names: Sequence[str]) -> list[str]:
        """Return the type of each name, NOT_FOUND for those that do not exist."""
        return [self.types.get(name, NOT_FOUND) for name in names]

    def copy(self, source: Self, names: Sequence[str]) -> None:
        """Take the values of ``names`` from another table; they lie in this order in both."""
        first, last = names[0], names[-1]
        mine = slice(self.places[first].start, self.places[last].stop)
        self.values[mine] = source.values[source.places[first].start : source.places[last].stop]

    def layout(self, names: Sequence[str]) -> tuple[struct.Struct, list[int]]:
        """Return the big-endian format of known ``names`` after a recipe id, and the places of their numbers."""
        form = struct.Struct(">B" + "".join(FORMATS[self.types[name]] for name in names))
        places = [place for name in names for place in range(self.places[name].start, self.places[name].stop)]
        return form, places

    def packer(self, names: Sequence[str], number: int) -> Callable[[], bytes]:
        """Return what packs the current values of known ``names`` after the recipe id ``number``: a data package."""
        form, places = self.layout(names)
        # itemgetter returns a bare item for a single place; asking for it twice and dropping one is simpler.
        pick = itemgetter(*places, places[0])
        return lambda: form.pack(number, *pick(self.values)[:-1])

    def unpacker(self, names: Sequence[str]) -> Callable[[bytes], None]:
        """Return what takes the values of known ``names`` from a data package.

        It raises Misbehaviour if the size is not the recipe's, and writes nothing then.
        """
        form, places = self.layout(names)

        def unpack(payload: bytes) -> None:
            if len(payload) != form.size:
                raise Misbehaviour(
                    f"a data package of {len(payload)} bytes for input recipe {payload[0]}; valid is {form.size}"
                )
            for place, number in zip(places, form.unpack(payload)[1:], strict=True):
                self.values[place] = number
            self.written(names)

        return unpack

    def written(self, names: Sequence[str]) -> None:
        """Obey what a client has written. Nothing here."""


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
