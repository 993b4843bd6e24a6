"""How closely a data set holds its pictures, where its coding loses some of them."""

from typing import Final

import numpy as np

from bid_ros.formats.base import Source

HIGHEST: Final = 255.0  # of a value of a picture
LEAST: Final = 1e-5  # mean square error that counts as none: JSON has no infinity


def picture_fidelity(source: Source, target: Source) -> dict[str, tuple[float, float]]:
    """Hold the pictures of the first episode against what they were.

    Args:
        source: what was converted.
        target: the result.

    Returns:
        Median and lowest peak signal-to-noise ratio of the pictures, dB, by column: of those that ``target`` codes with
        loss. 98 dB where a picture is exact.

    Raises:
        RecordingError: the files are damaged.
    """
    lossy = [column.name for column in target.contents.columns if column.image and column.codec]
    if not lossy:
        return {}
    before, after = (next(iter(data.episodes(0, lossy))).observations for data in (source, target))
    found = {}
    for name in lossy:
        errors = np.square(np.asarray(after[name], float) - np.asarray(before[name], float)).mean(axis=(1, 2, 3))
        ratios = 10 * np.log10(HIGHEST**2 / np.maximum(errors, LEAST))
        found[name] = (float(np.median(ratios)), float(ratios.min()))
    return found
