"""Episode node of several arms: prepares all, grants all or none, and ends an episode for all."""

import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final, TypeVar

from bid_msgs.msg import EpisodeEvent, Heartbeat
from bid_ros.core.arms import SUCCESS, joint_outcome, scene_seed
from bid_ros.core.outcome import EpisodeOutcome, outcome_from_text
from bid_ros.core.topics import DECISION, HEARTBEAT
from bid_ros.episodes.causes import outcome_of_end
from bid_ros.episodes.disturbance import disturbance
from bid_ros.episodes.log import EpisodeResult, RunLog, scene_of, write_run
from bid_ros.episodes.stops import EpisodeStopped, Stops
from bid_ros.episodes.summary import format_summary
from bid_ros.nodes.arm_sequence import ArmSequence
from bid_ros.nodes.arms import PARAMETERS as SHARED
from bid_ros.nodes.arms import Sides, values_of
from bid_ros.nodes.base import COMMAND_PRIORITY, BidNode
from bid_ros.nodes.episode_parameters import PARAMETERS as OF_ONE
from bid_ros.nodes.heartbeat import RARE_S
from bid_ros.nodes.parameters import Parameter
from bid_ros.nodes.ros_messages import fill_outcome
from bid_ros.nodes.run_watch import RECORDED, RunWatch
from bid_ros.nodes.sequence import SAFETY_SAYS_S
from bid_ros.nodes.start_watch import StartWatch
from bid_ros.safety.watchdog import PARTNER
from bid_ros.system.priority import raise_priority
from bid_ros.system.progress import PROGRESS

WITHOUT: Final = ("task", "arm_config", "bundle")
PARAMETERS = (
    *SHARED,
    *(item for item in OF_ONE if item.name not in WITHOUT),
    Parameter("system", "", "folder of the system, for the record"),
)
TOGETHER_S: Final = 120.0  # s in which the arms are prepared, from the first that is to the last
Result = TypeVar("Result")


class _Over(Exception):
    """The episode is over for this arm because it is over for another arm."""


class ArmsEpisodeNode(BidNode):
    """Runs the episodes of all arms in their twins. An episode is a success once it is one of every arm."""

    heartbeat_s = RARE_S

    def __init__(self) -> None:
        super().__init__("episode", PARAMETERS)
        raise_priority(COMMAND_PRIORITY)
        given = {name: self.value(name) for name in RECORDED}
        self._log = RunLog(task=self.value("name"), hardware="twin", system=self.value("system"), **given)
        stops = chain((self._log.stops,), iter(Stops, None))  # one stop of all arms is one stop of the run
        found = values_of(self).items()
        self._arms = [ArmSequence(self, *item, kept) for item, kept in zip(found, stops, strict=False)]
        self._sides, self._summary = Sides(self, self._arms), "running episodes"
        self._start = StartWatch(self._arms[0], "")  # one policy decides for all
        self._watch = RunWatch(self._log, alone=False)
        self._limit_s = self.value("timeout_s") or max(arm.task.episode_timeout for arm in self._arms)
        self._missing = {name for name in self.value("nodes") if name}
        for arm in self._arms:
            arm.subscribe(HEARTBEAT, partial(self._on_heartbeat, arm.arm), patient=True)
        self._arms[0].subscribe(DECISION, self._watch.decided, patient=True)  # the others' have the same number
        self._thread = threading.Thread(target=self._run, name="episodes", daemon=True)

    def begin(self) -> None:
        """Run the episodes."""
        self._sides.open()
        self._thread.start()

    def diagnose(self) -> tuple[bool, str, Mapping[str, object]]:
        """Return the episodes so far."""
        counts = {"episodes": len(self._log.results), "successes": self._log.successes, "of": self.value("episodes")}
        return True, self._summary, {**counts, "limit_s": self._limit_s}

    def close(self) -> None:
        """End the sequence. An unfinished episode counts as aborted."""
        for arm in self._arms:
            arm.closing.set()
        self._thread.join(timeout=3.0)
        self._sides.close()

    def _on_heartbeat(self, arm: str, message: Heartbeat) -> None:
        self._missing.discard(f"{arm}/{message.node}")

    def _run(self) -> None:
        status = 1
        try:
            while not self._attempt(0, self._wait_for_the_nodes):
                pass
            for arm in self._arms:
                arm.recovery.started = True
            while (episode := len(self._log.results)) < self.value("episodes"):
                self._attempt(episode, partial(self._episode, episode))
            status, self._summary = 0, f"ended: all {len(self._log.results)} episodes are done"
        except EpisodeStopped as stop:
            status, self._log.ended, self._summary = 3 if stop.latched else 1, stop.outcome, f"ended: {stop}"
            print(f"{stop}", file=sys.stderr, flush=True)
        except BaseException as error:
            self.thread_ended("the sequence", error)
        finally:
            self._save()
            print(format_summary(self._log), flush=True)
            self.tell()
            self.end(status)

    def _attempt(self, episode: int, steps: Callable[[], None]) -> bool:
        """Take steps of an episode; return whether nothing stopped them. After a stop, return when all are reset.

        Raises:
            EpisodeStopped: the run cannot go on.
        """
        self._begun = False
        try:
            steps()
        except EpisodeStopped as stop:
            self._grant()
            if any(arm.closing.is_set() for arm in self._arms) or not (stop.latched or self._arms[0].recovery.started):
                raise
            # Each waits for the others, whose stop may be the cause of its own. The first one says what comes next.
            begun, halted = self._begun, stop

            def recover(arm: ArmSequence) -> None:
                arm.recovery.after(halted, episode, begun or arm is not self._arms[0])

            self._together(recover)
            self._save()
            return False
        self._log.stops.ended()
        return True

    def _together(self, work: Callable[[ArmSequence], Result]) -> list[Result]:
        """Do the same with every arm at the same time. What stops one stops all.

        Raises:
            EpisodeStopped: that of the arm that stopped first, by itself if one did.
        """

        raised: list[tuple[ArmSequence, BaseException]] = []

        def guarded(arm: ArmSequence) -> Result:
            try:
                return work(arm)
            except BaseException as error:
                raised.append((arm, error))
                halted = error if isinstance(error, EpisodeStopped) else EpisodeStopped(outcome_of_end(None))
                for other in self._arms:
                    other.halted = other.halted or halted
                raise

        for arm in self._arms:
            arm.halted = None
        with ThreadPoolExecutor(len(self._arms)) as pool:
            futures = [pool.submit(guarded, arm) for arm in self._arms]
        if defect := next((error for _, error in raised if not isinstance(error, EpisodeStopped)), None):
            raise defect
        if raised:
            self._grant()
            raise self._cause(*raised[0])
        return [future.result() for future in futures]

    def _cause(self, arm: ArmSequence, stop: BaseException) -> EpisodeStopped:
        """Return why the first arm stopped. Where it followed another one, that one's own nodes say why a moment later.

        Args:
            arm: that stopped first.
            stop: what it was stopped by.
        """
        assert isinstance(stop, EpisodeStopped)
        until = time.monotonic() + SAFETY_SAYS_S
        while stop.rule in (PARTNER, "arm") and time.monotonic() < until:
            arm, stop = next(((other, own) for other in self._arms if (own := other.own_stop())), (arm, stop))
            time.sleep(0.01)
        outcome = EpisodeOutcome(f"{stop.outcome.text} ({arm.arm})", stop.outcome.kind, stop.outcome.code)
        return EpisodeStopped(outcome, stop.rule)

    def _grant(self, *sources: str) -> None:
        """Grant every arm to these sources, or to nobody."""
        for arm in self._arms:
            arm.grant(*sources)

    def _wait_for_the_nodes(self) -> None:
        self._say("waiting for the nodes")
        self._together(lambda arm: arm.wait_for_all(self._missing, self.value("ready_timeout_s")))

    def _episode(self, episode: int) -> None:
        seed, labels = self.value("seed") + episode, self.value("labels")
        label, scenes = labels[episode % len(labels)], {arm: scene_seed(seed, n) for n, arm in enumerate(self._arms)}
        events = {arm: EpisodeEvent(episode=episode, seed=scenes[arm], label=label) for arm in self._arms}
        self._tell(events, EpisodeEvent.PREPARE)
        self._say(f"episode {episode + 1}/{self.value('episodes')}  preparing")
        ready: set[str] = set()

        def prepare(arm: ArmSequence) -> None:
            arm.grant("episode")
            start = scene_of(arm.task, scenes[arm])
            arm.operator.prepare(start, scenes[arm], self.value("moving"), label)
            if arm is self._arms[0]:
                self._start.wait(lambda: False)
            ready.add(arm.arm)
            arm.wait(lambda: len(ready) == len(self._arms), TOGETHER_S, "the preparation of the other arm")

        self._together(prepare)
        self._begun = True
        self._grant(self.value("acting"))
        self._tell(events, EpisodeEvent.START)
        self._watch.begin(episode)
        started = time.monotonic()
        try:
            outcome = self._judged(self._outcomes(episode, started))
        except EpisodeStopped as stop:
            self._end(events, stop.outcome, seed, started)
            raise
        self._end(events, outcome, seed, started)

    def _outcomes(self, episode: int, started: float) -> dict[str, str]:
        """Wait until the episode is over for every arm, or with the first that has no success; return how it ended."""
        ended: dict[str, str] = {}
        failed = lambda: joint_outcome({**ended}) != SUCCESS  # noqa: E731  # of a copy: other threads add to it

        def show(arm: ArmSequence, elapsed_s: float, extra: str) -> None:
            if failed():
                raise _Over
            if arm is self._arms[0]:
                self._say(f"episode {episode + 1}/{self.value('episodes')}  {self._watch.line(elapsed_s, extra)}")

        def judge(arm: ArmSequence) -> None:
            try:
                ended[arm.arm] = arm.operator.judge(started, self._limit_s, partial(show, arm))
            except _Over:
                return
            if ended[arm.arm] == SUCCESS:
                over = lambda: len(ended) == len(self._arms) or failed()  # noqa: E731
                arm.wait(over, self._limit_s + 1.0, "the end of the other arm's part")
                rest = time.monotonic() + self.value("record_rest")
                arm.wait(lambda: time.monotonic() >= rest, 1.0 + self.value("record_rest"), "the rest")

        self._together(judge)
        return ended

    def _judged(self, ended: Mapping[str, str]) -> EpisodeOutcome:
        """Return the outcome of an episode. One whose twins were behind real time tells nothing of its policy."""
        outcome = outcome_from_text(joint_outcome(ended))
        if self.value("acting") != "policy":
            return outcome
        found = disturbance((0.0, 0.0, None), 0.0, min(arm.pace for arm in self._arms))
        return outcome if found is None else found.applied(outcome)

    def _end(
        self, events: Mapping[ArmSequence, EpisodeEvent], outcome: EpisodeOutcome, seed: int, started: float
    ) -> None:
        self._grant()
        self._watch.end()
        duration_s, event = time.monotonic() - started, events[self._arms[0]]
        for told in events.values():
            told.duration = duration_s
            fill_outcome(told, outcome)
        said = (outcome.text, duration_s, event.label, outcome.kind, outcome.code)
        self._log.results.append(EpisodeResult(int(event.episode), seed, outcome.success, *said))
        self._tell(events, EpisodeEvent.END)
        print(f"episode {event.episode + 1}: {outcome.text} after {duration_s:.1f} s", flush=True)
        self._save()

    @staticmethod
    def _tell(events: Mapping[ArmSequence, EpisodeEvent], kind: int) -> None:
        for arm, event in events.items():
            arm.tell_event(event, kind)

    def _say(self, text: str) -> None:
        print(f"{PROGRESS}{text}", flush=True)

    def _save(self) -> None:
        if out := self.value("out"):
            write_run(Path(out) / "run.json", self._log)


main = ArmsEpisodeNode.main
