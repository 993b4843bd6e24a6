"""Logs of runs, for tests."""

from bid_ros.core.outcome import SAFETY, EpisodeOutcome
from bid_ros.episodes.log import EpisodeResult, RunLog
from bid_ros.episodes.stops import EpisodeStopped, Stops

RESULTS = (
    EpisodeResult(0, 7, True, "success", 9.12345),
    EpisodeResult(1, 8, False, "timeout", 20.0),
    EpisodeResult(2, 9, True, "success", 8.0),
)


def run_log(**changes):
    values = {
        "task": "franka_place",
        "decoder": "bid",
        "samples": 16,
        "bundle_sha256": "ab12",
        "moving": 0.03,
        "seed": 7,
        "hardware": "twin",
        "results": RESULTS,
        "decision_ms": tuple(range(1, 102)),
        "command_age_ms": (90.0, 100.0, 110.0),
        "missed": 2,
    }
    return RunLog(**{**values, **changes})


def stopped(*reasons):
    stops = Stops()
    for reason in reasons:
        stops.add(EpisodeStopped(EpisodeOutcome(f"stopped: {reason}", SAFETY, "speed"), "speed"), 0, True)
    return stops
