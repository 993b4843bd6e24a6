"""Policy node of several arms: one decision every 0.1 s, of which each arm gets its part under one number and stamp."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bid_ros.core.arms import Arms, ArmsBuffer
from bid_ros.core.observation import Observation, ObservationBuffer
from bid_ros.core.task import Task, load_task
from bid_ros.decoding import Decoder
from bid_ros.nodes.arms import OF_ARM, Sides, placed_at, values_of
from bid_ros.nodes.arms import PARAMETERS as SHARED
from bid_ros.nodes.base import BidNode
from bid_ros.nodes.parameters import Parameter
from bid_ros.nodes.policy_node import STALLED_S, PolicyNode
from bid_ros.nodes.policy_parameters import PARAMETERS as OF_ONE
from bid_ros.nodes.policy_report import PolicyReport
from bid_ros.nodes.policy_site import Looks, PolicySite
from bid_ros.observing.intake import Intake
from bid_ros.policy.arms import ArmsScreen, arms_decoder, joint_bundle, load_arms_policy, load_bundles, part_of
from bid_ros.policy.base import Policy
from bid_ros.policy.decide import DecisionRecord
from bid_ros.safety.grants import Grants

WITHOUT = ("task", "bundle", "bundle_task", "signed_by", "arm_config")  # each arm has its own
PARAMETERS = (
    *SHARED,
    *(item for item in OF_ONE if item.name not in WITHOUT),
    Parameter("bundles", [""], "folder of the bundle of all arms, or of each arm's own"),
    Parameter("bundle_tasks", [""], "as bundle_task, of each arm's own bundle"),
)


class ArmPolicy(BidNode):
    """The policy node as one arm knows it; its host decides."""

    def __init__(self, host: BidNode, arm: str, values: Mapping[str, Any]) -> None:
        self.placed = placed_at(host, arm, values)
        super().__init__("policy", OF_ARM, STALLED_S)
        self.commanded, self._host = self.load_task(), host

    def diagnose(self) -> tuple[bool, str, Mapping[str, object]]:
        """Return what the host says."""
        return self._host.diagnose()


class ArmsPolicyNode(PolicyNode):
    """Decides for all arms on what all of them observe, while every arm is granted. See :data:`PARAMETERS`."""

    def __init__(self) -> None:
        super().__init__(PARAMETERS)
        self._limit_work(self.heartbeat.limit_s)
        own, sides = self.heartbeat.worked, Sides(self, list(self._nodes.values()))
        self._sides = sides

        def worked() -> None:
            own()
            sides.worked()

        self.worked = worked

    def begin(self) -> None:
        """Decide from now on."""
        self._sides.open()
        super().begin()

    def close(self) -> None:
        """End the decision thread, then the arms' nodes."""
        super().close()
        self._sides.close()

    def _limit_work(self, limit_s: float) -> float:
        for node in self._nodes.values():
            node.heartbeat.limit_s = limit_s
        return super()._limit_work(limit_s)

    def _read_bundle(self) -> None:
        self._nodes = {arm: ArmPolicy(self, arm, values) for arm, values in values_of(self).items()}
        folders, named = list(self.value("bundles")), list(self.value("bundle_tasks"))
        made_for = {arm: load_task(self._file(arm, named)) for arm in self._nodes}
        self._arms = Arms(self.value("name"), made_for)
        framed = {arm: task.with_frame_prefix(self._nodes[arm].frame_prefix) for arm, task in made_for.items()}
        self._framed = Arms(self.value("name"), framed)  # a bundle knows the frames without prefix
        self._task = self._commanded = self._arms.task
        self._bundles = load_bundles(folders, self._arms)
        self._bundle = joint_bundle(self._bundles)

    def _file(self, arm: str, named: Sequence[str]) -> str:
        """Return the path of the task that an arm's bundle was made for."""
        own = dict(zip(self._nodes, named, strict=False)).get(arm)
        return own or str(self._nodes[arm].value("task"))

    def _build_decoder(self, choice: Mapping[str, Any]) -> Decoder:
        horizon = self.value("action_horizon")
        return arms_decoder(choice["decoder"], self._bundle, self._arms, choice["samples"], horizon)

    def _start_policy(self, how: Mapping[str, Any]) -> Policy:
        policy = load_arms_policy(self._bundles, self._arms, how["runtime"], how["threads"])
        policy.warm_up(how["samples"])
        return policy

    def _looks(self) -> Looks:
        self._sites = {
            arm: PolicySite(node, node.commanded, self._framed.tasks[arm]) for arm, node in self._nodes.items()
        }
        screen = ArmsScreen({arm: site.screen for arm, site in self._sites.items()}, self._arms)

        def aware(observation: Observation) -> None:
            for arm, site in self._sites.items():
                site.looks.aware(self._arms.part(arm, observation))

        return Looks(screen.passes, screen.free, screen.rest, aware)

    def _connect(self, live: bool) -> None:
        self._buffer = ArmsBuffer(self._task, history=self._maker.history)
        ends = {arm: self._connected(arm, site) for arm, site in self._sites.items()}
        self._intake = _ArmsIntake({arm: intake for arm, (intake, _, _) in ends.items()})
        self._report = _ArmsReport({arm: report for arm, (_, report, _) in ends.items()}, self._framed)
        self._grants = _EveryGrant([grants for _, _, grants in ends.values()])

    def _connected(self, arm: str, site: PolicySite) -> tuple[Intake, PolicyReport, Grants]:
        observe = lambda name, stamp_ns, value: self._observe(f"{arm}/{name}", stamp_ns, value)  # noqa: E731
        refuse = lambda name, reason: self._refuse(f"{arm}/{name}", reason)  # noqa: E731
        return site.connect(_PartBuffer(site.task, self._buffer, arm), observe, refuse, self._on_grant, self._lock)


class _PartBuffer(ObservationBuffer):
    """Adds what an arm observes to the history of all."""

    def __init__(self, task: Task, whole: ObservationBuffer, arm: str) -> None:
        super().__init__(task)
        self._whole, self._arm = whole, arm

    def add(self, name: str, stamp_ns: int, value: Any) -> None:
        self._whole.add(f"{self._arm}/{name}", stamp_ns, value)


class _ArmsIntake(Intake):
    """The intakes of the arms as one: each knows where its own arm's tool is."""

    def __init__(self, intakes: Mapping[str, Intake]) -> None:
        self._intakes = intakes

    @property
    def problem(self) -> str:
        return next((f"{arm}: {item.problem}" for arm, item in self._intakes.items() if item.problem), "")

    def take(self, name: str, stamp_ns: int, value: Any, now_ns: int) -> str:
        return self._of(name, lambda intake, own: intake.take(own, stamp_ns, value, now_ns))

    def refuse(self, name: str, reason: str) -> str:
        return self._of(name, lambda intake, own: intake.refuse(own, reason))

    def _of(self, name: str, call: Callable[[Intake, str], str]) -> str:
        arm, _, own = name.partition("/")
        said = call(self._intakes[arm], own)
        return f"{arm}: {said}" if said else ""


class _ArmsReport(PolicyReport):
    """Publishes each arm's part of a decision. The counts are those of the decisions, not of their parts."""

    def __init__(self, reports: Mapping[str, PolicyReport], arms: Arms) -> None:
        self._reports, self._arms = reports, arms
        self.decided = self.missed = self.screened = 0

    def values(self) -> dict[str, object]:
        return {**next(iter(self._reports.values())).values(), "missed": self.missed}

    def publish(
        self,
        record: DecisionRecord,
        observation: Observation,
        complete_ns: int,
        delay: int | None,
        setting: Mapping[str, Any],
    ) -> int:
        took_ns = 0
        for arm, report in self._reports.items():
            report.missed = self.missed
            part = self._arms.part(arm, observation)
            took_ns = report.publish(part_of(record, arm, self._arms), part, complete_ns, delay, setting)
        self.decided += 1
        return took_ns


class _EveryGrant(Grants):
    """Live while every arm is granted: the arms move together, or none does."""

    def __init__(self, grants: Sequence[Grants]) -> None:
        self._every = grants

    def live(self, source: str, steady_ns: int) -> bool:
        return all(grants.live(source, steady_ns) for grants in self._every)


main = ArmsPolicyNode.main
