"""What disturbed an episode of a policy. It takes the episode out of the success rate, whichever way it ended."""

from dataclasses import dataclass
from typing import Final

from bid_ros.core.outcome import INFRASTRUCTURE, EpisodeOutcome
from bid_ros.episodes.causes import COMPUTER, SLOW_TWIN
from bid_ros.episodes.pauses import Pause
from bid_ros.recording.episodes import DISCARDED
from bid_ros.tasks.base import NOT_JUDGED

# Of an episode, in which the arm could not move: less is no reason to leave the episode out.
LOST_SHARE: Final = 0.1


@dataclass(frozen=True)
class Disturbance:
    """A reason why an episode tells nothing of its policy.

    A rate without the failures of a slow computer, but with its successes, would be too high.

    Attributes:
        why: half a sentence.
        part: what failed, one of :data:`bid_ros.episodes.causes.PARTS`.
    """

    why: str
    part: str

    def applied(self, outcome: EpisodeOutcome) -> EpisodeOutcome:
        """Return the outcome of the episode: what it was, and why it does not count."""
        if outcome.kind == INFRASTRUCTURE or outcome.text in (DISCARDED, NOT_JUDGED):
            return outcome
        return EpisodeOutcome(f"{outcome.text}, but {self.why}", INFRASTRUCTURE, self.part)


def disturbance(blamed: tuple[float, float, Pause | None], behind_s: float, pace: float) -> Disturbance | None:
    """Return what disturbed an episode, None if nothing did.

    Args:
        blamed: of its pauses, as :meth:`bid_ros.episodes.pauses.Pauses.blamed`.
        behind_s: s that the twin left out in it; 0 for a robot.
        pace: share of real time that the twin kept over the last 5 s of it; 1 for a robot.
    """
    lost_s, all_s, longest = blamed
    kept = min(pace, 1 - behind_s / all_s) if all_s > 0 else pace
    if kept < SLOW_TWIN:
        return Disturbance(f"the twin kept {kept:.2f} of real time", COMPUTER)
    if longest is None or lost_s <= LOST_SHARE * all_s:
        return None
    return Disturbance(f"the arm could not move for {lost_s:.1f} s of {all_s:.1f}: {longest.reason}", longest.part)
