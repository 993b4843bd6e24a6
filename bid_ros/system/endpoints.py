"""What each node of a system publishes, hears, offers and calls: the rights that it needs, and no more."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from bid_ros.cameras.config import load_cameras
from bid_ros.cameras.registry import BY_NODE
from bid_ros.core import topics
from bid_ros.core.errors import BidError
from bid_ros.core.task import Task
from bid_ros.core.topics import (
    body_topic,
    camera_full_topic,
    camera_info_topic,
    camera_topic,
    camera_view_topic,
    chunk_topic,
    feature_topic,
)
from bid_ros.robots.registry import ROBOTS
from bid_ros.safety.arbiter import PRIORITY
from bid_ros.system.folder import System
from bid_ros.tasks.topics import system_topics
from bid_ros.teleop.base import DEVICES

PARAMETERS: Final = (
    *("~/describe_parameters", "~/get_parameters", "~/get_parameter_types", "~/list_parameters"),
    *("~/set_parameters", "~/set_parameters_atomically", "~/get_type_description"),
)
"""Services that every node of ROS offers."""
EVERY_ROS_NODE: Final = (topics.ROSOUT, topics.PARAMETER_EVENTS)
EVERY_NODE: Final = (topics.HEARTBEAT, topics.DIAGNOSTICS)
OF_A_PERSON: Final = (topics.EPISODE_START, topics.EPISODE_OUTCOME, topics.EPISODE_DISCARD, topics.EPISODE_UNDO)
RESETS: Final = (topics.ARM_RESET, topics.SAFETY_RESET)


@dataclass(frozen=True)
class Endpoints:
    """The ends that a node may have, by their names as :mod:`bid_ros.core.topics` has them.

    Attributes:
        publish, subscribe: topics.
        serve, call: services.
    """

    publish: frozenset[str] = frozenset()
    subscribe: frozenset[str] = frozenset()
    serve: frozenset[str] = frozenset()
    call: frozenset[str] = frozenset()


def endpoints_of(system: System, twin: bool) -> dict[str, Endpoints]:
    """Return the ends of every node that a system may have, whoever drives it, and of a person's commands.

    Args:
        system: whose nodes.
        twin: it runs in its twin.

    Raises:
        BidError: a file of the system is not valid, or its robot is driven through ROS: its driver has topics that
            this does not know.
    """
    task = system.task
    if ROBOTS.find(task.robot).over_ros:
        raise BidError(
            f"robot '{task.robot}' is driven through ROS, and its driver's rights are not known here; valid is a robot "
            "that bid_ros drives itself, such as franka or ur"
        )
    nodes = {
        **_cameras(system, twin),
        **_deciding(task),
        **_moving(task),
        **_people(task, twin),
        **({"twin": _twin(task)} if twin else {}),
    }
    own = {name: _with(ends, EVERY_NODE + EVERY_ROS_NODE) for name, ends in nodes.items()}
    visitors = {name: _with(ends, EVERY_ROS_NODE) for name, ends in _visitors(system, twin).items()}
    return {**own, **visitors}


def _visitors(system: System, twin: bool) -> Mapping[str, Endpoints]:
    """Return the ends of a person's commands, such as ``bid reset``."""
    observed = {feature_topic(feature) for feature in system.task.observation}
    # Each of them has the number of its process at the end of its name.
    followed = frozenset(name.replace("~", "bid_follow_*") for name in PARAMETERS)
    return {
        "bid_reset": _ends(call=RESETS),
        "bid_accept": _ends((), {topics.ARM_STATUS}, call=topics.TWIN_HARMS.values() if twin else ()),
        "bid_operator": _ends((topics.EPISODE_NOTE,), call=OF_A_PERSON),
        "bid_check": _ends((), {*observed, *_camera_topics(system, twin)}),
        "bid_calibrate": _ends(
            (topics.CALIBRATION_POSE, topics.MEASURED_LIMITS),
            {topics.ARM_STATUS, *_camera_topics(system, twin), *_whole(system, twin), *([topics.TWIN_SCENE] * twin)},
        ),
        "bid_follow": _ends((), {*system_topics(system.task), topics.MEASURED_LIMITS}, followed),
    }


def _camera_topics(system: System, twin: bool) -> list[str]:
    """Return the topics of cameras that have a driver of their own."""
    names = [camera.name for camera in system.task.cameras]
    cameras = load_cameras(system.file("cameras.yaml"), names, twin).values()
    return [item.address for item in cameras if item.source == "topic"]


def _whole(system: System, twin: bool) -> list[str]:
    """Return the topics of the whole images of cameras that are devices."""
    names = [camera.name for camera in system.task.cameras]
    cameras = load_cameras(system.file("cameras.yaml"), names, twin).values()
    return [camera_full_topic(item.name) for item in cameras if item.source not in BY_NODE]


def _with(ends: Endpoints, published: Iterable[str]) -> Endpoints:
    """Return the ends of a node with those that every node has."""
    return Endpoints(ends.publish | {*published}, ends.subscribe, ends.serve | {*PARAMETERS}, ends.call)


def _ends(
    publish: Iterable[str] = (), subscribe: Iterable[str] = (), serve: Iterable[str] = (), call: Iterable[str] = ()
) -> Endpoints:
    return Endpoints(frozenset(publish), frozenset(subscribe), frozenset(serve), frozenset(call))


def _cameras(system: System, twin: bool) -> Mapping[str, Endpoints]:
    names = [camera.name for camera in system.task.cameras]
    images = [topic(name) for name in names for topic in (camera_topic, camera_info_topic, camera_view_topic)]
    heard = [*_camera_topics(system, twin), *([topics.TWIN_SCENE] if twin else [])]
    markers = (topics.MARKERS, topics.OVERLAY, topics.TF, topics.ROBOT_DESCRIPTION)
    seen = (topics.DECISION, topics.SAFETY_STATE, topics.SAFETY_CHUNK, topics.EPISODE_EVENT, topics.ARM_STATUS)
    return {
        "camera": _ends([*images, *_whole(system, twin), topics.TF_STATIC], heard),
        "monitor": _ends(markers, [*seen, topics.MEASURED_LIMITS, *map(camera_topic, names)]),
        "recorder": _ends((), system_topics(system.task)),
    }


def _deciding(task: Task) -> Mapping[str, Endpoints]:
    """Return the ends of those who decide on the motion of an episode."""
    observed = {feature_topic(feature) for feature in task.observation}
    devices = {topic for device in DEVICES.names() for topic in _heard_by(device, task)}
    bodies = _bodies(task)
    return {
        "policy": _ends(
            (topics.POLICY_CHUNK, topics.DECISION, topics.INSTRUCTION),
            {*observed, topics.ARM_STATUS, topics.SAFETY_CHUNK, topics.GRANT},
        ),
        "teleop": _ends(
            (topics.TELEOP_CHUNK, topics.EPISODE_NOTE, topics.TELEOP_SWITCH),
            {topics.ARM_STATUS, topics.EPISODE_EVENT, topics.GRANT, *bodies, *devices},
            call=OF_A_PERSON,
        ),
    }


def _moving(task: Task) -> Mapping[str, Endpoints]:
    """Return the ends of the nodes on the way of a chunk to the robot."""
    joints = () if task.columns("joints") is None else (topics.JOINT_REFERENCE,)
    return {
        "safety": _ends(
            (topics.SAFETY_CHUNK, topics.SAFETY_STATE, topics.SAFETY_SHADOW),
            {*map(chunk_topic, PRIORITY), topics.GRANT, topics.ARM_STATUS, topics.HEARTBEAT, topics.DIAGNOSTICS},
            (topics.SAFETY_RESET,),
        ),
        "arm": _ends(
            (topics.ARM_STATUS, topics.TOOL_POSE, topics.TF, topics.JOINT_STATES, *joints),
            (topics.HEARTBEAT, topics.GRANT, topics.SAFETY_CHUNK, topics.SAFETY_STATE),
            (topics.ARM_RESET,),
        ),
    }


def _people(task: Task, twin: bool) -> Mapping[str, Endpoints]:
    """Return the ends of the node that runs the episodes, with those that a person at the controls needs."""
    states = (topics.ARM_STATUS, topics.SAFETY_STATE, topics.HEARTBEAT, topics.DECISION, topics.PARAMETER_EVENTS)
    asked = (topics.DIAGNOSTICS, topics.TELEOP_SWITCH, topics.SAFETY_SHADOW)
    return {
        "episode": _ends(
            (topics.EPISODE_EVENT, topics.EPISODE_CHUNK, topics.GRANT),
            [*states, *asked, *(_bodies(task) if twin else ())],
            OF_A_PERSON,
            (topics.TWIN_RESET, *RESETS) if twin else (),
        )
    }


def _twin(task: Task) -> Endpoints:
    serves = (topics.TWIN_RESET, *topics.TWIN_HARMS.values())
    return _ends([topics.TWIN_SCENE, *_bodies(task)], [topics.EPISODE_EVENT], serves)


def _bodies(task: Task) -> list[str]:
    """Return the topics of the twin's bodies that are scored, or that a program looks at."""
    return [name for name in system_topics(task) if name.startswith(body_topic("")[: -len("_pose")])]


def _heard_by(device: str, task: Task) -> Mapping[str, str]:
    """Return what a teleoperation device listens to with its own settings; nothing where it needs some."""
    found = DEVICES.find(device)
    try:
        return found.topics(task, found.read(""))
    except BidError:
        return {}
