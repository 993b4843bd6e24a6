"""Deletes bags and episodes into a trash folder beside them, and restores them from it."""

import json
import shutil
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from bid_ros.core.errors import RecordingError
from bid_ros.curation.catalog import chosen
from bid_ros.curation.edit import without
from bid_ros.recording.files import bag_files
from bid_ros.recording.reader import BagReader

TRASH: Final = ".bid_trash"
ABOUT: Final = "deleted.json"
REPLACED: Final = ".replaced"


@dataclass(frozen=True)
class Deleted:
    """What lies in the trash.

    Attributes:
        place: folder in the trash that holds the bag as it was.
        name: name of the bag.
        number: the episode that was deleted; None: the whole bag.
        when: local time of the deletion.
        left: sizes and times of the files of the bag that was left without the episode; empty for a whole bag.
    """

    place: str
    name: str
    number: int | None
    when: str
    left: tuple[tuple[str, int, int], ...] = ()


def delete(bag: Path, number: int | None) -> Deleted:
    """Move a bag into the trash. With ``number``, a bag without that episode takes its place.

    Raises:
        RecordingError: there is no such bag or episode.
    """
    bag = bag.absolute()
    bag_files(bag)
    if number is not None:
        with BagReader(bag) as reader:
            chosen(reader, number)
            alone = len(chosen(reader, None)) == 1
        number = None if alone else number
    place = _new_place(bag)
    rest = bag.parent / TRASH / ".rest" / bag.name
    left: tuple[tuple[str, int, int], ...] = ()
    if number is not None:
        if bag.is_file():
            raise RecordingError(f"{bag} is a single file; valid is a bag folder: bid episodes split makes some")
        shutil.rmtree(rest.parent, ignore_errors=True)
        without(bag, number, rest)
        left = _state(rest)
    gone = Deleted(str(place), bag.name, number, time.strftime("%Y-%m-%d %H:%M:%S"), left)
    place.mkdir(parents=True)
    (place / ABOUT).write_text(json.dumps(asdict(gone), indent=1) + "\n")  # first: a broken delete can be restored
    bag.rename(place / bag.name)
    if number is not None:
        rest.rename(bag)
        rest.parent.rmdir()
    return gone


def restore(bag: Path) -> Deleted:
    """Put a bag back as it was before it, or an episode of it, was last deleted.

    Raises:
        RecordingError: it is not in the trash, or another bag has its place.
    """
    bag = bag.absolute()
    found = [item for item in trashed(bag.parent) if item.name == bag.name]
    if not found:
        names = sorted({item.name for item in trashed(bag.parent)})
        valid = f"valid are {', '.join(names)}" if names else "it is empty"
        raise RecordingError(f"bag {bag.name} is not in the trash {bag.parent / TRASH}; {valid}")
    gone = found[-1]
    place = Path(gone.place)
    if bag.exists():
        if not gone.left or _state(bag) != gone.left:
            raise RecordingError(
                f"{bag} exists again, or was changed after the deletion; valid is to move it away first"
            )
        # Every message of it is in the bag that comes back. Moved first: a broken restore can be repeated.
        bag.rename(place / REPLACED)
    (place / bag.name).rename(bag)
    shutil.rmtree(place)
    with suppress(OSError):
        place.parent.rmdir()  # if it is empty
    return gone


def trashed(folder: Path) -> list[Deleted]:
    """Return what lies in the trash of a folder, the last deleted last."""
    found = []
    for about in sorted((folder.absolute() / TRASH).glob(f"*/{ABOUT}")):
        try:
            content = json.loads(about.read_text())
            left = tuple((str(name), int(size), int(changed)) for name, size, changed in content["left"])
            gone = Deleted(str(about.parent), content["name"], content["number"], content["when"], left)
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if (about.parent / gone.name).exists():
            found.append(gone)
    return found


def _new_place(bag: Path) -> Path:
    """Return a new folder in the trash beside a bag; their names are in the order of the deletions."""
    trash = bag.parent / TRASH
    taken = [int(path.name.split("_")[0]) for path in trash.glob("[0-9]*_*")]
    return trash / f"{max(taken, default=-1) + 1:06d}_{bag.name}"


def _state(bag: Path) -> tuple[tuple[str, int, int], ...]:
    """Return name, size and time of change of each file of a bag: they tell whether it was changed."""
    files = sorted(path for path in bag.rglob("*") if path.is_file())
    return tuple((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files)
