"""A policy that LeRobot saved, by the type in its configuration."""

from collections.abc import Callable
from importlib import import_module
from typing import Final

from bid_ros.core.errors import BidError
from bid_ros.importing.lerobot.folder import CONFIG, PolicyFolder, read_folder
from bid_ros.importing.policy import ImportedPolicy, ImportOptions

Converter = Callable[[PolicyFolder, ImportOptions], ImportedPolicy]
# Type: module with ``convert``.
CONVERTERS: Final = {"diffusion": "diffusion", "multi_task_dit": "dit", "vqbet": "vqbet"}


def read_policy(path: str, options: ImportOptions) -> ImportedPolicy:
    """Read a folder that LeRobot saved a policy to.

    Args:
        path: the folder.
        options: what a person says about it.

    Raises:
        BidError: no importer knows the type; or see the type's module.
    """
    folder = read_folder(path)
    if "type" not in folder.config:
        raise BidError(f"{folder.path / CONFIG} has no field 'type'; valid is one of {', '.join(CONVERTERS)}")
    kind = folder.config["type"]
    if kind not in CONVERTERS:
        raise BidError(f"{folder.path / CONFIG}: type is {kind!r}; valid are {', '.join(CONVERTERS)}")
    convert: Converter = import_module(f"bid_ros.importing.lerobot.{CONVERTERS[kind]}").convert
    return convert(folder, options)
