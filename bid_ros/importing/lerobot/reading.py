"""A policy that LeRobot saved, by the type in its configuration."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Final

from bid_ros.core.errors import BidError
from bid_ros.importing.elsewhere import PAGE, check_rebuilt
from bid_ros.importing.lerobot.act import convert_act
from bid_ros.importing.lerobot.checkpoint import CONFIG, PolicyFolder, read_folder
from bid_ros.importing.lerobot.diffusion import convert_dit, convert_unet
from bid_ros.importing.lerobot.fields import ActFields, DiffusionFields, DitFields, VqBetFields, is_unused
from bid_ros.importing.lerobot.vqbet import convert_vqbet
from bid_ros.importing.policy import ImportedPolicy, ImportOptions
from bid_ros.importing.unknown_fields import UnknownFields

Converter = Callable[[PolicyFolder, ImportOptions], ImportedPolicy]
# By type: its fields, and what makes a policy of them.
CONVERTERS: Final[dict[str, tuple[Any, Converter]]] = {
    "act": (ActFields, convert_act),
    "diffusion": (DiffusionFields, convert_unet),
    "multi_task_dit": (DitFields, convert_dit),
    "vqbet": (VqBetFields, convert_vqbet),
}


def read_policy(path: str, options: ImportOptions) -> ImportedPolicy:
    """Read a folder that LeRobot saved a policy to.

    Args:
        path: the folder.
        options: what a person says about it.

    Raises:
        BidError: no importer knows the type, which may say how to run it; or see the type's converter.
    """
    check_rebuilt(path)
    folder = read_folder(path)
    if "type" not in folder.config:
        raise BidError(f"{folder.path / CONFIG} has no field 'type'; valid is one of {', '.join(CONVERTERS)}")
    kind = folder.config["type"]
    if kind not in CONVERTERS:
        raise BidError(
            f"{folder.path / CONFIG}: type is {kind!r}; valid are {', '.join(CONVERTERS)}; others may run in their own "
            f"environment and be asked there, see {PAGE}"
        )
    settings, convert = CONVERTERS[kind]
    unknown, where = UnknownFields(options.ignored), str(folder.path / CONFIG)
    used = {item.name for item in fields(settings)}
    config = unknown.without(
        folder.config, used.__contains__, is_unused, where, "LeRobot 0.1 to 0.6 do not write for this type"
    )
    unknown.check_named(where)
    policy = convert(replace(folder, config=config), options)
    return replace(policy, notes=(*unknown.notes, *policy.notes))
