"""Policy node: makes decisions at a fixed rate from cameras and arm state."""

import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.clocks import newer
from bid_ros.core.errors import ChunkError, ObservationError, RemoteError
from bid_ros.core.observation import Observation, ObservationBuffer
from bid_ros.core.schedule import PeriodicThread, Tick, is_fresh
from bid_ros.core.task import load_task
from bid_ros.core.topics import SAFETY_CHUNK, Qos
from bid_ros.decoding import Decoder
from bid_ros.nodes.base import DECISION_PRIORITY, BidNode
from bid_ros.nodes.instruction import PARAMETER, Instruction
from bid_ros.nodes.parameters import Parameter
from bid_ros.nodes.policy_parameters import PARAMETERS
from bid_ros.nodes.policy_report import NEXT_DECODER, limit_samples
from bid_ros.nodes.policy_site import Looks, PolicySite
from bid_ros.nodes.ros_messages import chunk_from_message
from bid_ros.policy.base import Policy
from bid_ros.policy.budget import DelayMeter, SampleBudget, fitted_budget
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.decide import DecisionMaker, bundle_decoder, check_decoder
from bid_ros.policy.decision_rate import budget_within, decisions_a_step, decoder_between
from bid_ros.policy.registry import start_policy
from bid_ros.policy.runtimes.registry import check_samples
from bid_ros.policy.signature import check_signature
from bid_ros.safety.grants import SHADOW
from bid_ros.system.priority import raise_priority

SOURCE = "policy"
STARTED = {name: name for name in ("samples", "runtime", "threads", "engines")} | {"fallback": "fallback_runtime"}
CHOICE, FIXED = ("decoder", "samples"), ("seed", "action_horizon")
STALLED_S, STALLED_PERIODS = 0.3, 1.5  # in one decision, or without one: then there is no heartbeat
CHANGING_S = 60.0  # instead, while the decoder changes: nobody grants the policy then


class PolicyNode(BidNode):
    """Keeps the decision memory, and publishes one chunk a decision while granted. See :data:`PARAMETERS`."""

    changeable: Sequence[str] = (*CHOICE, PARAMETER)
    lossless: Qos | None = None  # of the observed features, where nothing of them may be lost

    def __init__(self, parameters: Sequence[Parameter] = PARAMETERS, sim_time: bool = False) -> None:
        super().__init__("policy", parameters, STALLED_S, sim_time)
        self._read_bundle()
        self.heartbeat.limit_s = max(STALLED_S, STALLED_PERIODS * self._task.dt_ns / NANOSECONDS)
        self._a_step = decisions_a_step(self._task, self.value("decision_rate_hz"))
        self._period_ns = self._task.dt_ns // self._a_step
        self._budget_ms = budget_within(self.value("budget_ms"), self._task, self._a_step)
        self._choice = {name: self.value(name) for name in CHOICE}
        self._decoder = self._build_decoder(self._choice)
        self._policy = self._start_policy({argument: self.value(name) for argument, name in STARTED.items()})
        self._instruction = Instruction(self, self._policy, self._bundle.label)
        given = self._policy, self._decoder, self._task, self.value("seed")
        self._maker = DecisionMaker(*given, True, time.monotonic_ns, *self._looks())
        self._budget = self._fit()
        self._next_decoder: tuple[Decoder, int] | None = None
        self._lock = threading.Condition()
        self._complete_ns: dict[int, int] = {}
        self._episode = self._decided_episode = self._last_stamp = 0
        self._granted, self._waiting, self._lost = False, "", ""
        self._delays = DelayMeter(self._task.dt_ns)
        self._connect(live=not sim_time)
        self._thread = self._decision_thread()

    def _read_bundle(self) -> None:
        """Read the tasks and the bundle, and check its signature."""
        self._commanded = self.load_task()
        own_task = self.value("bundle_task") or self.value("task")
        self._task = load_task(own_task).with_frame_prefix(self.frame_prefix)
        self._bundle = load_bundle(Path(self.value("bundle")), load_task(own_task))
        if self.value("signed_by"):
            check_signature(self._bundle, self.value("signed_by"))

    def _start_policy(self, how: Mapping[str, Any]) -> Policy:
        return start_policy(self._bundle, self._task, **how, say=self.get_logger().warning)

    def _looks(self) -> Looks:
        self._site = PolicySite(self, self._commanded, self._task)
        self._sites = {"": self._site}
        return self._site.looks

    def _connect(self, live: bool) -> None:
        """Hear what is observed and who grants, and advertise what is decided."""
        self._buffer = ObservationBuffer(self._task, history=self._maker.history)
        heard = self._observe, self._refuse, self._on_grant
        ends = self._site.connect(self._buffer, *heard, self._lock, live, self.lossless)
        self._intake, self._report, self._grants = ends
        self.subscribe(SAFETY_CHUNK, self._on_forwarded)

    def _decision_thread(self) -> PeriodicThread:
        phase_ns, late_ns = (round(self.value(name) * 1e6) for name in ("decision_phase_ms", "max_late_ms"))
        ended = partial(self.thread_ended, "the decision thread")
        return PeriodicThread("decide", self._period_ns, self._turn, phase_ns, min(late_ns, self._period_ns), ended)

    def begin(self) -> None:
        """Decide from now on. What was compiled and calibrated until now had no haste."""
        raise_priority(DECISION_PRIORITY, every_thread=True)
        self._instruction.tell()
        self._thread.start()
        self.get_logger().info(f"ready: {self._decoder.name}, N = {self.value('samples')}, bundle {self._bundle.name}")

    def diagnose(self) -> tuple[bool, str, Mapping[str, object]]:
        """Return decisions and misses so far, and latency percentiles of the last hundred decisions."""
        values: dict[str, object] = {"decoder": self._decoder.name, **self._policy.capabilities.vitals()}
        budget, following = self._budget, self._next_decoder  # other threads replace them
        known = {"samples": budget and budget.samples, NEXT_DECODER: following and following[0].name}
        known["delay_steps"] = self._maker.delay
        values |= {name: value for name, value in known.items() if value is not None}
        values |= {**self._instruction.values(), **self._report.values()}
        if not self._granted:
            return True, "not granted", values
        problem = self._lost or self._waiting or (self._budget.shortfall if self._budget is not None else "")
        return not problem, problem or "deciding", values

    def close(self) -> None:
        """End the decision thread."""
        self._thread.stop()

    def change(self, values: Mapping[str, Any]) -> None:
        """Take another decoder, N or text when nobody grants the policy, so at the latest before the next episode.

        Raises:
            BidError: a value is not possible. Then no parameter changes.
        """
        super().change(values)
        self._instruction.check(values)
        self._choose({**self._choice, **{name: values[name] for name in CHOICE if name in values}})
        self._instruction.take(values)

    def _choose(self, choice: dict[str, Any]) -> None:
        if choice == self._choice:
            return
        check_samples(choice["samples"], self._choice["samples"], self._policy.runtime)
        decoder = self._build_decoder(choice)
        check_decoder(decoder, self._policy)
        self._choice = choice
        with self._lock:
            self._next_decoder = decoder, choice["samples"]
        self.tell()  # who begins an episode waits for it

    def _build_decoder(self, choice: Mapping[str, Any]) -> Decoder:
        text, steps = decoder_between(choice["decoder"], self._a_step), self.value("action_horizon")
        return bundle_decoder(text, self._bundle, self._task, choice["samples"], steps)

    def _fit(self) -> SampleBudget | None:
        self._maker.limit = None
        if (budget := fitted_budget(self._policy, self._decoder, self._task, self._budget_ms)) is not None:
            limit_samples(self.get_logger(), self._maker, budget, self._budget_ms)
        return budget

    def _limit_work(self, limit_s: float) -> float:
        """Set the time without a step of the work after which there is no heartbeat; return what it was, s."""
        before, self.heartbeat.limit_s = self.heartbeat.limit_s, limit_s
        return before

    def _take_next_decoder(self) -> None:
        """Change the decoder between two episodes: what it warms up takes too long for an arm in motion."""
        if (found := self._next_decoder) is None:
            return
        self._decoder, samples = found
        self._waiting = f"it takes the decoder {self._decoder.name}"
        self._maker.use(self._decoder)
        self._delays, self._maker.delay = DelayMeter(self._task.dt_ns), None  # another decoder takes another time
        limit_s = self._limit_work(CHANGING_S)
        try:
            self._policy.warm_up(samples)
            self._budget = self._fit()
        finally:
            self._limit_work(limit_s)
            self._waiting = ""
        self.worked()
        with self._lock:
            self._next_decoder = None if self._next_decoder is found else self._next_decoder
        self.tell()
        self.get_logger().info(f"decides from now on: {self._decoder.name}, N = {samples}")

    def _refuse(self, name: str, reason: str) -> None:
        self.get_logger().warning(self._intake.refuse(name, reason), throttle_duration_sec=1.0)

    def _observe(self, name: str, stamp_ns: int, value: Any) -> None:
        with self._lock:
            if reason := self._intake.take(name, stamp_ns, value, time.time_ns()):
                self.get_logger().warning(reason, throttle_duration_sec=1.0)
                return
            stamp = self._buffer.stamp_ns()
            if stamp is not None and stamp not in self._complete_ns:
                self._complete_ns = {stamp: time.monotonic_ns()}
                self._lock.notify_all()

    def _on_forwarded(self, message: Any) -> None:
        """Hear how safety slowed a decision: the next one coheres with what is executed."""
        if message.source == SOURCE and message.scale != 1.0:
            try:
                self._maker.forwarded(chunk_from_message(message, self._commanded, slowed=True))
            except ChunkError as error:
                self.get_logger().warning(str(error), throttle_duration_sec=1.0)

    def _on_grant(self) -> None:
        """Reset when a grant begins: the previous decision belongs to another episode."""
        before = self._granted
        if self._may_move() and not before:
            self._episode += 1

    def _may_move(self) -> bool:
        with self._lock:
            now = time.monotonic_ns()
            self._granted = self._grants.live(SOURCE, now) or self._grants.live(SHADOW, now)
            return self._granted

    def _turn(self, tick: Tick) -> None:
        """Decide, or change the decoder. From a failure to the next decision there is no heartbeat: the arm stops."""
        if not self._lost:
            self.worked()
        try:
            if self._may_move():
                self._decide(tick)
            else:
                self._lost = ""
                self._take_next_decoder()
                self._instruction.tell()
        except RemoteError as error:
            self._lost = str(error)
            self._report.missed += 1
            self.heartbeat.failed()
            self.tell()
            self.get_logger().error(f"no decision: {error}", throttle_duration_sec=1.0)
        if not self._lost:
            self.worked()

    def _decide(self, tick: Tick) -> None:
        self._report.missed += tick.skipped
        try:
            observation, complete_ns = self._newest()
        except ObservationError as error:
            self._wait(self._intake.problem or str(error))
            return
        self._waiting, set_back = "", observation.stamp_ns < self._last_stamp
        self._last_stamp = observation.stamp_ns
        # Only this thread uses the decision memory, so a reset never interrupts a decision.
        episode = self._episode
        if episode != self._decided_episode or set_back:
            self._maker.reset()
            self._instruction.tell()
            self._decided_episode = episode
            for site in self._sites.values():
                site.begin(observation.stamp_ns)
        delay = self._maker.delay
        record = self._maker.decide(observation)
        self._lost = "" if record is not None else self._lost
        took_ns = 0 if record is None else record.encode_ns + record.sample_ns + record.choose_ns
        if self._budget is not None and record is not None and self._budget.took(took_ns):
            limit_samples(self.get_logger(), self._maker, self._budget, self._budget_ms)
        if record is None or episode != self._episode or not self._may_move():
            return
        self._delays.took(self._report.publish(record, observation, complete_ns, delay, self._setting()))
        self._maker.delay = self._delays.steps

    def _wait(self, why: str) -> None:
        """Miss a decision, for want of an observation, and say why."""
        self._report.missed += 1
        if why != self._waiting:
            self._waiting = why
            self.tell()

    def _setting(self) -> dict[str, Any]:
        """Return how decisions are made now, as their message says it."""
        setting = {"runtime": self._policy.runtime, "bundle": self._bundle.label, "stream": self._maker.stream}
        return {"decoder": self._decoder.name, **setting, **{name: self.value(name) for name in FIXED}}

    def _newest(self) -> tuple[Observation, int]:
        """Wait for frames; return the newest observation, and the steady time of its completion in ns.

        Raises:
            ObservationError: something is missing, or there are no new frames.
        """
        with self._lock:
            self._lock.wait_for(self._has_fresh_news, timeout=self.value("frame_wait_ms") / 1e3 / self._a_step)
            observation = self._buffer.assemble()
            if not newer(observation.stamp_ns, self._last_stamp):
                raise ObservationError("no new camera frames since the last decision")
            return observation, self._complete_ns.get(observation.stamp_ns, time.monotonic_ns())

    def _has_fresh_news(self) -> bool:
        stamp = self._buffer.stamp_ns()
        if stamp is None or not newer(stamp, self._last_stamp):
            return False
        return is_fresh(self._complete_ns.get(stamp, 0), time.monotonic_ns(), self._period_ns)


main = PolicyNode.main
