"""The checks of one episode. Each is one function of the episode's numbers and its task, which may be None."""

from collections.abc import Callable, Iterator
from typing import Final

from bid_ros.core.task import Task
from bid_ros.curation.checks.clock import check_clock
from bid_ros.curation.checks.ending import check_ending
from bid_ros.curation.checks.gaps import check_drops, check_gaps, check_pairs
from bid_ros.curation.checks.grasp import check_grasp
from bid_ros.curation.checks.limits import check_commanded, check_measured
from bid_ros.curation.checks.stale import check_frozen_arm, check_frozen_images, check_repeated
from bid_ros.curation.checks.still import check_still
from bid_ros.curation.fault import Fault
from bid_ros.curation.track import EpisodeTrack

Check = Callable[[EpisodeTrack, Task | None], Iterator[Fault]]

CHECKS: Final[tuple[Check, ...]] = (
    check_ending,
    check_gaps,
    check_drops,
    check_pairs,
    check_clock,
    check_repeated,
    check_frozen_images,
    check_frozen_arm,
    check_commanded,
    check_measured,
    check_still,
    check_grasp,
)
