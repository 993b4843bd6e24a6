"""The folder of large golden files and data beside the checkout, which is no part of the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
VARIABLE = "BID_SHARED"


def shared_file(*parts: str) -> Path:
    """Return the path of a shared file or folder; the test is left out where it is not.

    It is in the folder that the variable BID_SHARED names, or in ``shared`` beside the checkout.
    """
    folders = [Path(os.environ[VARIABLE])] if VARIABLE in os.environ else [path / "shared" for path in ROOT.parents]
    for folder in folders:
        if folder.joinpath(*parts).exists():
            return folder.joinpath(*parts)
    return pytest.skip(f"no {'/'.join(parts)} in the shared folder beside the checkout or in {VARIABLE}")
