"""A bus in memory: what is published on a topic comes to who listens to it, in the same process."""

import time
from collections import deque
from types import SimpleNamespace

import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import quaternion_from_matrix
from bid_ros.robots.bus import GoalResult, Heard


def message(values):
    """The object with the fields of plain values."""
    if isinstance(values, dict):
        return SimpleNamespace(**{name: message(value) for name, value in values.items()})
    return [message(value) for value in values] if isinstance(values, list) else values


class MemoryGoal:
    """A goal, for both sides."""

    def __init__(self, values, refused=False):
        self.message, self.refused = message(values), refused
        self.canceled, self.result, self.status = False, None, ""

    def done(self):
        if self.refused:
            raise ArmError("the action refused a goal")
        return self.result is not None

    def ended(self):
        return None if self.result is None else GoalResult(self.status, message(self.result))

    def cancel(self):
        self.canceled = True

    def finish(self, values, status="succeeded"):
        self.result, self.status = values, status


class MemoryRequest:
    """A question to a service."""

    response = None

    def answer(self):
        found, self.response = self.response, None
        return found


class MemoryBus:
    """A :class:`bid_ros.robots.bus.Bus`. ``sent`` keeps what was published, by topic."""

    def __init__(self):
        self.listened, self.offered, self.served, self.judges = {}, {}, {}, {}
        self.sent, self.asked = {}, {}
        self.newest = {}

    def listen(self, channel):
        self.listened.setdefault(channel.name, deque(maxlen=channel.depth))

    def offer(self, channel):
        self.offered[channel.name] = channel

    def latest(self, name):
        self.news(name)
        return self.newest.get(name)

    def news(self, name):
        waiting = self.listened.get(name, deque())
        found = list(waiting)
        waiting.clear()
        if found:
            self.newest[name] = found[-1]
        return found

    def publish(self, name, values):
        self.sent.setdefault(name, []).append(values)
        if name in self.listened:
            self.listened[name].append(Heard(message(values), time.time_ns()))

    def partners(self, name):
        return int(name in self.offered or name in self.served)

    def send_goal(self, name, values):
        judge = self.judges.get(name)
        goal = MemoryGoal(values, bool(judge and judge(message(values))))
        if not goal.refused:
            self.served[name].append(goal)
        return goal

    def ask(self, name):
        self.asked.setdefault(name, []).append(MemoryRequest())
        return self.asked[name][-1]

    def reply(self, name, values):
        for request in self.asked.pop(name, []):
            request.response = message(values)

    def serve(self, channel, judge=None):
        self.served.setdefault(channel.name, [])
        self.judges[channel.name] = judge

    def goals(self, name):
        found, self.served[name] = self.served[name], []
        return found

    def full_name(self, name):
        return f"/{name}"

    def close(self):
        self.listened, self.offered = {}, {}


def stamped(seconds):
    """Plain values of a header, so many s after 1970."""
    return {"stamp": {"sec": int(seconds), "nanosec": round(seconds % 1 * 1e9)}}


def joint_state(stamp_s, positions, velocities=None):
    """Plain values of a JointState; positions and velocities by name."""
    values = {"header": stamped(stamp_s), "name": list(positions), "position": list(positions.values())}
    return {**values, "velocity": list((velocities or {}).values())}


def transform(parent, child, position=(0.0, 0.0, 0.0), rotation=None, stamp_s=None):
    """Plain values of a TransformStamped, of now unless a stamp is given: the child in the parent, m and a matrix."""
    turn = quaternion_from_matrix(np.eye(3) if rotation is None else rotation)
    return {
        "header": {**stamped(time.time() if stamp_s is None else stamp_s), "frame_id": parent},
        "child_frame_id": child,
        "transform": {
            "translation": dict(zip("xyz", position, strict=True)),
            "rotation": dict(zip("xyzw", turn.tolist(), strict=True)),
        },
    }
