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
    "UINT8": "B",
    "UINT32": "I",
    "UINT64": "Q",
    "INT32": "i",
    "DOUBLE": "d",
    "VECTOR3D": "3d",
    "VECTOR6D": "6d",
    "VECTOR6INT32": "6i",
}
# Type name -> how many numbers one field holds.
COUNTS: Final = {name: int(text[:-1] or 1) for name, text in FORMATS.items()}
# What clients write, a controller also reports.
INPUT_REGISTERS: Final[Mapping[str, str]] = {
    **{f"input_int_register_{number}": "INT32" for number in range(REGISTERS)},
    **{f"input_double_register_{number}": "DOUBLE" for number in range(REGISTERS)},
}
# What never changes in the twin: nothing is wired to its inputs and outputs. Name -> type and value of each number.
CONSTANTS: Final[Mapping[str, tuple[str, float]]] = {
    "joint_temperatures": ("VECTOR6D", 25.0),  # degrees C
    "actual_joint_voltage": ("VECTOR6D", 48.0),
    **dict.fromkeys(("actual_main_voltage", "actual_robot_voltage"), ("DOUBLE", 48.0)),
    **dict.fromkeys(("actual_digital_input_bits", "actual_digital_output_bits"), ("UINT64", 0)),
    "tcp_force_scalar": ("DOUBLE", 0.0),  # N; as actual_TCP_force
    **{f"standard_analog_{way}{number}": ("DOUBLE", 0.0) for way in ("input", "output") for number in (0, 1)},
}
# What the driver reads, what ur_rtde needs for its control script, and what it asks for if nobody names fields.
OUTPUT_TYPES: Final[Mapping[str, str]] = {
    "timestamp": "DOUBLE",
    **{f"target_{name}": "VECTOR6D" for name in ("q", "qd", "qdd", "current", "moment")},
    **{f"actual_{name}": "VECTOR6D" for name in ("q", "qd", "current")},
    "joint_control_output": "VECTOR6D",
    **{f"{which}_TCP_{name}": "VECTOR6D" for which in ("actual", "target") for name in ("pose", "speed")},
    "actual_TCP_force": "VECTOR6D",
    **dict.fromkeys(("actual_tool_accelerometer", "elbow_position", "elbow_velocity"), "VECTOR3D"),
    **dict.fromkeys(("ft_raw_wrench", "payload_inertia"), "VECTOR6D"),
    "payload_cog": "VECTOR3D",
    **dict.fromkeys(("payload", "actual_execution_time", "actual_momentum", "actual_robot_current"), "DOUBLE"),
    **dict.fromkeys(("speed_scaling", "target_speed_fraction"), "DOUBLE"),
    **dict.fromkeys(("robot_mode", "safety_mode"), "INT32"),
    "joint_mode": "VECTOR6INT32",
    **dict.fromkeys(("runtime_state", "robot_status_bits", "safety_status_bits"), "UINT32"),
    **{name: kind for name, (kind, _) in CONSTANTS.items()},
    **{f"output_int_register_{number}": "INT32" for number in range(REGISTERS)},
    **{f"output_double_register_{number}": "DOUBLE" for number in range(REGISTERS)},
    **INPUT_REGISTERS,
}
# ur_rtde asks for the force as it connects, and the driver never writes it.
INPUT_TYPES: Final[Mapping[str, str]] = {**INPUT_REGISTERS, "external_force_torque": "VECTOR6D"}


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


class Inputs(FieldTable):
    """The input fields, who may write each of them, and how often each was written."""

    def __init__(self) -> None:
        super().__init__(INPUT_TYPES)
        self._owners: dict[str, object] = {}
        self.writes = dict.fromkeys(INPUT_TYPES, 0)

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
        """Count a write of each field."""
        for name in names:
            self.writes[name] += 1
