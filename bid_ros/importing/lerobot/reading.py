"""A policy that LeRobot saved, by the type in its configuration."""

from collections.abc import Callable
from typing import Final

from bid_ros.core.errors import BidError
from bid_ros.importing.elsewhere import PAGE, check_rebuilt
from bid_ros.importing.lerobot.checkpoint import CONFIG, PolicyFolder, read_folder
from bid_ros.importing.lerobot.diffusion import convert_dit, convert_unet
from bid_ros.importing.lerobot.vqbet import convert_vqbet
from bid_ros.importing.policy import ImportedPolicy, ImportOptions

Converter = Callable[[PolicyFolder, ImportOptions], ImportedPolicy]
CONVERTERS: Final[dict[str, Converter]] = {
    "diffusion": convert_unet,
    "multi_task_dit": convert_dit,
    "vqbet": convert_vqbet,
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
    return CONVERTERS[kind](folder, options)
