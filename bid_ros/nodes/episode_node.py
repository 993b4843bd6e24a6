"""Episode runner: prepares, starts, times, scores and repeats episodes, then writes ``run.json``."""

import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.duration import Duration
from std_msgs.msg import Bool
from std_srvs.srv import Trigger

from bid_msgs.msg import ArmStatus, EpisodeEvent, Heartbeat, SafetyState
from bid_ros.core.outcome import EpisodeOutcome, outcome_from_text
from bid_ros.core.topics import DECISION, DIAGNOSTICS, EPISODE_EVENT, EPISODE_UNDO, HEARTBEAT, TELEOP_SWITCH
from bid_ros.episodes.causes import outcome_of_end
from bid_ros.episodes.log import EpisodeResult, scene_of, write_run
from bid_ros.episodes.stops import EpisodeStopped
from bid_ros.episodes.summary import format_summary
from bid_ros.episodes.takeover import Takeover
from bid_ros.nodes.bystander import ShadowReports, operator_of
from bid_ros.nodes.episode_parameters import PARAMETERS
from bid_ros.nodes.heartbeat import RARE_S
from bid_ros.nodes.recovery import RunRecovery
from bid_ros.nodes.ros_messages import fill_outcome, header
from bid_ros.nodes.run_events import RunEvents
from bid_ros.nodes.run_watch import RunWatch, run_log
from bid_ros.nodes.sequence import SequenceNode
from bid_ros.nodes.start_watch import StartWatch
from bid_ros.policy.bundle import bundle_sha256
from bid_ros.recording.episodes import DISCARDED, UNDO, UNDONE
from bid_ros.safety.grants import SHADOW
from bid_ros.system.ended import read_end
from bid_ros.system.progress import PROGRESS

STILL = 0.002, 0.01  # m/s and rad/s of a set-point that stands still
ACKNOWLEDGED_S = 0.5  # s in which every subscriber gets the end of an episode


class EpisodeNode(SequenceNode):
    """Runs its sequence in one thread. Callbacks only store what arrives."""

    heartbeat_s = RARE_S

    def __init__(self) -> None:
        super().__init__("episode", PARAMETERS)
        self.slow, self._summary = self.value("slow"), "running episodes"
        self._running = self._begun = False  # an episode, after its preparation; begun: also after its end
        self._stays = self.value("prepares") and not self.value("twin")  # until a person lets a robot move
        self._limit_s, self._log = self.value("timeout_s") or self.task.episode_timeout, run_log(self, self.task)
        by_person, shadow = self.value("takeover"), self.value("shadow")
        alone = self.value("acting") == "policy" and not (self.value("human") or by_person or shadow)
        self._acting = (SHADOW, *(["teleop"] if by_person else [])) if shadow else (self.value("acting"),)
        self._watch, self._start = RunWatch(self._log, alone), StartWatch(self, self.value("awaited"))
        self._record = RunEvents(self, self.value("out"))
        self._events = self.advertise(EPISODE_EVENT)
        self._missing = {name for name in self.value("nodes") if name}
        self._heartbeats = self.subscribe(HEARTBEAT, self._on_heartbeat, patient=True)
        self.subscribe(DECISION, self._watch.decided, patient=True)
        self._person, self._ended, self._recorder = self.value("human"), threading.RLock(), ""
        self._last: EpisodeEvent | None = None
        self._judged = self._person or not self.value("twin")  # by a person, not by physics
        self._operator = operator_of(self, self.task, self._correct if self._judged else None, self._person)
        if self._judged:
            self.serve(Trigger, EPISODE_UNDO, lambda _: self._undo())
        self.subscribe(DIAGNOSTICS, self._on_diagnostics, patient=True)
        self._recovery = RunRecovery(self, self._log.stops, self.value("twin"), self._record.calls)
        self._takeover = Takeover(self.value("return_s")) if by_person and not shadow else None
        if self._takeover is not None:
            self.subscribe(TELEOP_SWITCH, self._on_switch)
        self._shadow = ShadowReports(self, self._log) if shadow else None
        self._thread = threading.Thread(target=self._run, name="episodes", daemon=True)

    def begin(self) -> None:
        """Run the episodes."""
        self._record.open()
        self._thread.start()

    def diagnose(self) -> tuple[bool, str, Mapping[str, object]]:
        """Return the episodes so far, what the next one waits for, and how long one may last."""
        counts = {"episodes": len(self._log.results), "successes": self._log.successes, "of": self.value("episodes")}
        waits = {"awaits": self._operator.awaits or self._start.awaits, "limit_s": self._limit_s}
        return True, self._summary, counts | waits

    def close(self) -> None:
        """End the sequence. An unfinished episode counts as aborted."""
        self.closing.set()
        self._thread.join(timeout=3.0)

    def on_status(self, message: ArmStatus) -> None:
        """Note what the arm does."""
        super().on_status(message)
        self._watch.told(message, self.safety)
        self._record.told(message)
        twist = np.linalg.norm(np.reshape(message.reference_twist, (2, 3)), axis=1)
        if self._takeover is not None:
            self._takeover.stated(not (twist <= STILL).all(), time.monotonic_ns())

    def on_safety(self, message: SafetyState) -> None:
        """Note what safety says."""
        super().on_safety(message)
        self._record.judged(message)

    def check(self) -> None:
        """Renew the grant. Where a person may take over, it goes to whom the arm belongs now."""
        super().check()
        if self._takeover is not None and self._running:
            source = self._takeover.source(time.monotonic_ns())
            if self._granted != ((source,) if source else ()):
                self.grant(*([source] if source else []))
                print(f"{self._takeover.phase.value}", flush=True)

    def _on_switch(self, message: Bool) -> None:
        if self._takeover is not None:
            self._takeover.switch(message.data, time.monotonic_ns())

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in (item for item in message.status if item.hardware_id == self.hardware_id):
            if status.name.endswith("recorder"):
                self._recorder = "recorded" if status.level == DiagnosticStatus.OK else status.message
            self.pace = self._watch.lags({item.key: item.value for item in status.values}, self.pace)

    def _on_heartbeat(self, message: Heartbeat) -> None:
        self._missing.discard(message.node)
        if not self._missing:  # nobody is waited for any more
            self.destroy_subscription(self._heartbeats)

    def end_outcome(self) -> EpisodeOutcome:
        """Return the outcome of an episode during which this node is asked to end: it says who ended the run."""
        return outcome_of_end(read_end(Path(self.value("out"))) if self.value("out") else None)

    def _run(self) -> None:
        status = 1
        try:
            self._log.bundle_sha256 = bundle_sha256(Path(bundle)) if (bundle := self.value("bundle")) else ""
            while not self._attempt(0, self._wait_for_the_nodes):
                pass
            self._recovery.started = True
            self._save()
            while (episode := self._next_episode()) < self.value("episodes"):
                self._attempt(episode, partial(self._episode, episode))
            status, self._summary = 0, f"ended: all {len(self._log.results)} episodes are done"
        except EpisodeStopped as stop:
            status, self._log.ended, self._summary = 3 if stop.latched else 1, stop.outcome, f"ended: {stop}"
            print(f"{stop}", file=sys.stderr, flush=True)
        finally:
            try:
                self._record.end(status, self._log.ended)
                self._save()
                print(format_summary(self._log), flush=True)
            except BaseException:
                status = 1
                raise
            finally:
                self.tell()
                self.end(status)

    def _attempt(self, episode: int, steps: Callable[[], None]) -> bool:
        """Take steps of an episode; return whether nothing stopped them. After a stop, return when it is reset.

        Raises:
            EpisodeStopped: the run cannot go on.
        """
        self._begun = False
        try:
            steps()
        except EpisodeStopped as stop:
            self.grant()
            # What nobody latched is tried again in a twin. At a robot it has no reset that a person could give.
            if self.closing.is_set() or not (stop.latched or (self.value("twin") and self._recovery.started)):
                raise
            self._recovery.after(stop, episode, self._begun)
            self._stays = self._stays or (stop.latched and not self.value("twin"))
            self._save()
            return False
        self._log.stops.ended()
        return True

    def _wait_for_the_nodes(self) -> None:
        print(f"{PROGRESS}waiting for the nodes", flush=True)
        self.wait_for_all(self._missing, self.value("ready_timeout_s"), self.value("robot_wait_s"))

    def _next_episode(self) -> int:
        """Return the number of the next episode: that of one which was taken back or discarded comes again."""
        with self._ended:
            self._operator.again.clear()
            return len(self._log.results)

    def _episode(self, episode: int) -> None:
        if self._stays:
            self._operator.await_leave(bool(self._log.stops.found))
        self._stays, seed, labels = False, self.value("seed") + episode, self.value("labels")
        event = EpisodeEvent(robot=self.robot, episode=episode, seed=seed, label=labels[episode % len(labels)])
        self._publish(event, EpisodeEvent.PREPARE)
        self._say(episode, "preparing")
        self.grant(*(["episode"] if self.value("prepares") else []))
        self._operator.prepare(scene_of(self.task, seed), seed, self.value("moving"), event.label)
        self._start.wait(self._operator.again.is_set)
        with self._ended:
            if self._operator.again.is_set():
                return
            self._last = None  # from here on the episode before stays as it is
        self._begun = True
        self.grant(*self._acting)
        self._publish(event, EpisodeEvent.START)
        started = time.monotonic()
        if self._takeover is not None:
            self._takeover.begin(time.monotonic_ns())
        self._running = True
        self._watch.begin(episode)
        try:
            show = self._progress_of_person if self._person or self.value("awaited") else self._progress
            outcome = self._operator.judge(started, self._limit_s, partial(show, episode))
            if outcome == "success":
                rested = time.monotonic() + self.value("record_rest")
                self.wait(lambda: time.monotonic() >= rested, 2 * self.value("record_rest"), "the rest")
        except EpisodeStopped as stop:
            self._end(event, told := self._watch.judged(stop.outcome, self.pace), time.monotonic() - started)
            raise EpisodeStopped(told, stop.rule) from stop
        self._end(event, self._watch.judged(outcome_from_text(outcome), self.pace), time.monotonic() - started)

    def _end(self, event: EpisodeEvent, outcome: EpisodeOutcome, duration_s: float) -> None:
        self._running = False
        self._watch.end()
        event.duration = duration_s
        fill_outcome(event, outcome)
        if event.label == self.value("decoder"):  # a person may have changed it since the run began
            event.label = self._log.deciding or event.label
        self.grant()
        if self._shadow is not None:
            self._shadow.wait()
        with self._ended:
            if outcome.text != DISCARDED or not self._judged:  # a person gets another try
                said = (outcome.text, duration_s, event.label, outcome.kind, outcome.code)
                self._log.results.append(EpisodeResult(int(event.episode), int(event.seed), event.success, *said))
                self._last = event
            self._publish(event, EpisodeEvent.END)
        # This process may end next, and nobody repeats for it what the recorder missed.
        self._events.wait_for_all_acked(Duration(seconds=ACKNOWLEDGED_S))
        print(f"episode {event.episode + 1}: {outcome.text} after {duration_s:.1f} s", flush=True)
        self._save()

    def _correct(self, outcome: str) -> tuple[bool, str]:
        """Give the episode that ended last another outcome, until the next one starts."""
        with self._ended:
            if (event := self._last) is None:
                return False, "no episode runs, and none has ended since the last start"
            if outcome == DISCARDED:
                return self._undo()
            given = self._watch.corrected(outcome_from_text(outcome))
            if refusal := self._log.correct(given):
                return False, refusal
            fill_outcome(event, given)
            self._publish(event, EpisodeEvent.END)
        print(f"episode {event.episode + 1}: {outcome} after all", flush=True)
        return True, ""

    def _undo(self) -> tuple[bool, str]:
        """Take back the episode that ended last; it is prepared again. Once more: the one before."""
        with self._ended:
            if self._running:
                return False, "an episode runs; valid is to discard it"
            if not self._log.results:
                return False, "no episode has ended"
            last = self._log.results.pop()
            event = EpisodeEvent(robot=self.robot, episode=last.episode, seed=last.seed, label=last.label)
            fill_outcome(event, outcome_from_text(UNDONE))
            self._last = None
            self._publish(event, UNDO)
            self._operator.again.set()
        print(f"episode {last.episode + 1}: taken back", flush=True)
        return True, f"episode {last.episode} is taken back"

    def _progress(self, episode: int, elapsed_s: float, extra: str) -> None:
        self._say(episode, self._watch.line(elapsed_s, extra, self.status))

    def _progress_of_person(self, episode: int, elapsed_s: float, extra: str) -> None:
        told = self._watch.arm_line(self.status) if self._takeover is None else self._takeover.phase.value
        self._say(episode, "  ".join(filter(None, (f"{elapsed_s:4.1f} s", extra, told, self._recorder))))

    def _publish(self, event: EpisodeEvent, kind: int) -> None:
        event.kind, event.header = kind, header(self.now_ns())
        self._record.episode(event, kind)
        self._events.publish(event)

    def _say(self, episode: int, text: str) -> None:
        print(f"{PROGRESS}episode {episode + 1}/{self.value('episodes')}  {text}", flush=True)

    def _save(self) -> None:
        """Write the run so far: whoever kills this node loses none of it."""
        if out := self.value("out"):
            with self._ended:
                self._log.events = self._record.head
                write_run(Path(out) / "run.json", self._log)


main = EpisodeNode.main
