"""What a person at the controls must see of a run: who may move the arm, the episode, limits, and what is not well."""

import math
import re
from collections.abc import Iterable
from threading import Lock
from typing import Any, Final

import numpy as np

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.poses import pose_arrays
from bid_ros.core.rotation import Array, matrix_from_quaternion
from bid_ros.core.shapes import opening_at_rest
from bid_ros.core.stamps import stamp_to_ns
from bid_ros.core.task import Task
from bid_ros.core.topics import ARM_STATUS, DIAGNOSTICS, EPISODE_EVENT, GRANT, SAFETY_STATE
from bid_ros.teleop.nearness import Nearness, ToolLimits

# Constants of bid_msgs. A test compares them with the installed messages.
PREPARE, START, END, UNDO = 0, 1, 2, 3  # of EpisodeEvent
RUNNING, STOPPED, WAITING = 0, 1, 2  # of SafetyState
WARN, SCALE = 1, 2  # of its action
MOVING_MODES: Final = (0, 1, 2)  # of ArmStatus: holding, tracking, and braking, from which the next chunk moves it
LATCHED_MODES: Final = (3, 4)  # stopped, fault
ARM_SILENT_S, PICTURE_SILENT_S, NODE_SILENT_S = 0.5, 1.0, 3.5
OFF_M: Final = 0.02  # of the tool from its set-point, above which something may press against it
DRIVERS: Final = {"policy": "the policy", "teleop": "the person", "episode": "the run, by itself"}
HINTS: Final = re.compile(r"(: |\. )(hold a pad|start it|Hold a pad).*")  # for who drives
HOLD: Final = "hold a pad or a key to drive"
ENDED: Final = "ended: "  # of what the episode node says last
ASKED: Final = "aborted: shut down"
Fact = tuple[str, str, bool]  # name, text, and whether it is worth a look


class Cockpit:
    """Takes what the nodes say, and tells it to a person. Any thread may use it; every time is a steady one in ns.

    Args:
        task: of the system.
    """

    def __init__(self, task: Task) -> None:
        self._lock, self._limits = Lock(), ToolLimits(task)
        self._widest, self._fastest = task.limits.gripper_max, task.limits.max_speed
        self._cameras = [camera.name for camera in task.cameras]
        self._newest: dict[str, tuple[int, Any]] = {}  # by topic
        self._grants: dict[str, tuple[int, tuple[str, ...]]] = {}  # end and sources, by granter
        self._nodes: dict[str, tuple[int, Any]] = {}  # diagnostics, by the node's own name
        self._pictures: dict[str, int] = {}
        self._began_ns = 0  # the episode

    def hear(self, topic: str, message: Any, now_ns: int) -> None:
        """Take a message of one of the topics that are shown."""
        with self._lock:
            if topic == GRANT:
                self._grants[message.granter] = now_ns + stamp_to_ns(message.duration), tuple(message.sources)
            elif topic == DIAGNOSTICS:
                for status in message.status:
                    self._nodes[status.name.rpartition("/")[2].rpartition(" ")[2]] = now_ns, status
            else:
                self._newest[topic] = now_ns, message
            if topic == EPISODE_EVENT and message.kind == START:
                self._began_ns = now_ns

    def see(self, camera: str, now_ns: int) -> None:
        """Note that a picture of a camera has come."""
        with self._lock:
            self._pictures[camera] = now_ns

    def tool(self) -> Array | None:
        """Return the measured rotation of the tool ``(3, 3)``, tool to base; None: the arm has not said it yet."""
        with self._lock:
            status = self._last(ARM_STATUS)
        return None if status is None else matrix_from_quaternion(pose_arrays(status.tool)[1])

    def ending(self) -> str:
        """Return why the run ends, as its nodes said it."""
        with self._lock:
            told = self._said("episode")
            stop = self._stop()
        if told.startswith(ENDED) and not told.endswith(ASKED):
            return told.removeprefix(ENDED)
        return f"stopped: {stop}" if stop and told != ENDED + ASKED else "somebody has ended it"

    def shown(self, live: bool, drives: bool, now_ns: int) -> dict[str, Any]:
        """Return what is shown now, as JSON has it.

        Args:
            live: the person at the controls holds the dead man's switch.
            drives: it is shown to that person; otherwise to one who watches.
            now_ns: steady time.
        """
        with self._lock:
            state, text = self._state(live, now_ns)
            text = text if drives else HINTS.sub("", text).replace("you drive", "somebody else drives")
            return {
                "state": state,
                "text": text,
                "offers": self._offers(state) if drives else "",
                "episode": self._episode(now_ns),
                "facts": self._facts(now_ns),
                "banner": self._troubles(text, now_ns),
                "recorder": self._recorder(),
                "opening": self._opening(),
                "dim": [name for name in self._cameras if self._dark_s(name, now_ns) > PICTURE_SILENT_S],
            }

    def _last(self, topic: str) -> Any:
        return self._newest.get(topic, (0, None))[1]

    def _said(self, node: str) -> str:
        found = self._nodes.get(node)
        return "" if found is None else str(found[1].message)

    def _value(self, node: str, key: str) -> str:
        found = self._nodes.get(node)
        return "" if found is None else next((str(item.value) for item in found[1].values if item.key == key), "")

    def _age(self, then_ns: int | None, now_ns: int) -> float:
        return math.inf if then_ns is None else (now_ns - then_ns) / NANOSECONDS

    def _dark_s(self, camera: str, now_ns: int) -> float:
        """Return the s since the last picture of a camera."""
        return self._age(self._pictures.get(camera), now_ns)

    def _granted(self, now_ns: int) -> set[str]:
        """Return the sources that somebody lets move the arm now."""
        return {source for end_ns, sources in self._grants.values() if now_ns < end_ns for source in sources}

    def _stop(self) -> str:
        """Return why safety or the arm has stopped; empty if neither has."""
        safety, arm = self._last(SAFETY_STATE), self._last(ARM_STATUS)
        if safety is not None and safety.state == STOPPED:
            return str(safety.reason)
        return str(arm.reason) if arm is not None and arm.mode in LATCHED_MODES else ""

    def _state(self, live: bool, now_ns: int) -> tuple[str, str]:
        """Return one word for the colour of the page, and the sentence that matters most."""
        if stop := self._stop():
            return "stopped", f"Stopped: {stop}. Nothing moves until a reset"
        safety, arm, event = self._last(SAFETY_STATE), self._last(ARM_STATUS), self._last(EPISODE_EVENT)
        if arm is None or safety is None:
            return "waiting", f"Waiting for {'the arm' if arm is None else 'the safety node'}"
        if safety.state == WAITING:
            return "waiting", f"Safety waits: {safety.reason}"
        number, granted = self._number(), self._granted(now_ns)
        if event is not None and event.kind == START:
            if self._age(self._newest[ARM_STATUS][0], now_ns) > ARM_SILENT_S:
                return "waiting", f"{number}: waiting for the arm, of which nothing is heard"
            if "teleop" in granted and arm.mode in MOVING_MODES:
                return ("moving" if live else "ready"), f"{number}: {'you drive' if live else HOLD}"
            if "policy" in granted:
                return "policy", f"{number}: the policy drives. Hold a pad or a key to take over"
            return "waiting", f"{number}: the arm brakes before the next one gets it"
        return self._between(event, number, granted)

    def _between(self, event: Any, number: str, granted: set[str]) -> tuple[str, str]:
        awaits = self._value("episode", "awaits")
        if awaits == "leave":
            return "waiting", "The arm holds: look at it. It moves by itself once you let it"
        if event is not None and event.kind == PREPARE and awaits:
            asked = "start it when you are" if awaits == "start" else f"it begins once {awaits} is there"
            return "waiting", f"{number} is ready: {asked}"
        if "episode" in granted:
            return "prepares", f"{number} is prepared: the arm moves by itself"
        if event is not None and event.kind == END:
            return "waiting", f"{number}: {event.outcome} after {event.duration:.0f} s"
        return "waiting", f"Waiting: {self._said('episode') or 'the run has not begun'}"

    def _number(self) -> str:
        """Return the name of the episode that is next, runs, or has ended last."""
        event, of = self._last(EPISODE_EVENT), self._value("episode", "of")
        return f"Episode {1 if event is None else event.episode + 1}{f' of {of}' if of else ''}"

    def _offers(self, state: str) -> str:
        """Return what the person may say of the episode: its ``start``, how it ``ends``, or nothing."""
        event = self._last(EPISODE_EVENT)
        awaits = self._value("episode", "awaits")
        if state == "stopped" or (event is None and awaits != "leave"):
            return ""
        if event is not None and event.kind == START:
            return "end"
        return awaits if awaits == "leave" or (event.kind == PREPARE and awaits == "start") else ""

    def _episode(self, now_ns: int) -> dict[str, Any]:
        event = self._last(EPISODE_EVENT)
        number = 1 if event is None else int(event.episode) + 1
        runs, limit = event is not None and event.kind == START, self._value("episode", "limit_s")
        passed_s = self._age(self._began_ns, now_ns) if runs else None
        return {
            "name": self._number(),
            "runs": runs,
            "passed_s": passed_s,
            "left_s": max(0.0, float(limit) - passed_s) if limit and passed_s is not None else None,
            "before": number - 1,
        }

    def _facts(self, now_ns: int) -> list[Fact]:
        """Return what is shown all the time."""
        safety, arm = self._last(SAFETY_STATE), self._last(ARM_STATUS)
        words = {RUNNING: "runs", STOPPED: "STOPPED", WAITING: "waits"}
        state = "silent" if safety is None else words.get(safety.state, "unknown")
        facts: list[Fact] = [("safety", state, state not in ("runs", "waits"))]
        if arm is None:
            return facts
        position, turn = pose_arrays(arm.tool)
        found = self._limits.near(
            position, matrix_from_quaternion(turn), opening_at_rest(arm.gripper_width, arm.gripper_busy)
        )
        speed = math.hypot(*arm.reference_twist[:3])
        off = float(np.linalg.norm(pose_arrays(arm.reference)[0] - position))
        x, y, z = position.tolist()
        return [
            *facts,
            ("limits", _joined(found), any(item.near for item in found)),
            ("speed", f"{speed:.2f} of {self._fastest:g} m/s", False),
            ("force", f"not measured; {1e3 * off:.0f} mm off its set-point", off > OFF_M),
            ("moved by", DRIVERS.get(arm.source, "nobody: it holds"), False),
            ("tool", f"{x:.3f} {y:.3f} {z:.3f} m", False),
            ("gripper", f"{1e3 * arm.gripper_width:.0f} mm" if math.isfinite(arm.gripper_width) else "unknown", False),
        ]

    def _troubles(self, text: str, now_ns: int) -> list[str]:
        """Return what is not well, without what ``text`` says already."""
        safety = self._last(SAFETY_STATE)
        arm_s = self._age(self._newest[ARM_STATUS][0], now_ns) if ARM_STATUS in self._newest else 0.0
        found = [f"nothing is heard of the arm for {arm_s:.0f} s"] if arm_s > ARM_SILENT_S else []
        if safety is not None and safety.state == RUNNING and safety.action in (WARN, SCALE):
            found.append(f"safety: {safety.reason}")
        found += self._dark(now_ns)
        for node, (then_ns, status) in self._nodes.items():
            if (age := self._age(then_ns, now_ns)) > NODE_SILENT_S:
                found.append(f"{node}: silent for {age:.0f} s")
            elif _level(status) and status.message not in text:
                found.append(f"{node}: {status.message}")
        return found

    def _dark(self, now_ns: int) -> list[str]:
        """Return which cameras show nothing; one that never did counts once an episode is prepared."""
        ages = {camera: self._dark_s(camera, now_ns) for camera in self._cameras}
        known = EPISODE_EVENT in self._newest
        return [
            f"{camera}: no picture {f'for {age:.0f} s' if math.isfinite(age) else 'yet'}"
            for camera, age in ages.items()
            if age > PICTURE_SILENT_S and (known or math.isfinite(age))
        ]

    def _recorder(self) -> str:
        if "recorder" not in self._nodes:
            return "none: nothing is recorded"
        rate, left = self._value("recorder", "mb_per_s"), self._value("recorder", "disk_left_s")
        room = f", disk for {_while(float(left))}" if left and math.isfinite(float(left)) else ""
        on = self._said("recorder").startswith("recording")
        well = "" if _level(self._nodes["recorder"][1]) else ", nothing lost"
        return f"{f'writes {rate} MB/s' if on else 'waits for the next episode'}{room}{well}"

    def _opening(self) -> float | None:
        """Return how far the gripper is open: 0 closed to 1; None: nobody knows."""
        arm = self._last(ARM_STATUS)
        if arm is None or not math.isfinite(arm.gripper_width) or not self._widest:
            return None
        return min(1.0, max(0.0, float(arm.gripper_width) / self._widest))


def _while(seconds: float) -> str:
    return f"{seconds / 3600:.0f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


def _joined(found: Iterable[Nearness]) -> str:
    return ", ".join(item.text for item in found)


def _level(status: Any) -> int:
    """Return the level of a diagnostic status: 0 is well."""
    return status.level[0] if isinstance(status.level, bytes) else int(status.level)
