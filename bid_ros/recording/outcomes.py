"""Which episodes of a recording are wanted, by how they ended."""

from typing import Final

from bid_ros.core.errors import RecordingError

SUCCESS, FAILURE, ALL = "success", "failure", "all"
OUTCOMES: Final = (SUCCESS, FAILURE, ALL)


def check_outcomes(wanted: str) -> str:
    """Return which episodes are wanted, one of ``OUTCOMES``. Raises RecordingError for another word."""
    if wanted not in OUTCOMES:
        raise RecordingError(f"episodes of outcome '{wanted}' do not exist; valid are {', '.join(OUTCOMES)}")
    return wanted
