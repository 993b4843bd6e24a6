"""The task as a network sees it."""

from dataclasses import replace

from space_samples import PLACE

from bid_ros.policy.spaces.config import ObservedFeature, Part, Space
from bid_ros.policy.spaces.view import NetworkTask, network_task

SPACE = Space(
    observation=(
        ObservedFeature(name="observation.image", camera=PLACE.cameras[0].name, size=(84, 96)),
        ObservedFeature(name="observation.state", columns=(Part(feature="tool_rotation", form="matrix"),)),
    ),
    action=(Part(feature="gripper_width"), Part(ignored=3)),
    held=("tool_position", "tool_rotation"),
    observation_steps=5,
    past_rows=0,
    horizon=4,
    rate_hz=20.0,
)


def test_features_columns_and_rates_are_the_network_s():
    short = replace(PLACE, horizon=2)
    task = network_task(SPACE, short)
    assert [(item.name, item.kind, item.shape) for item in task.observation] == [
        ("observation.image", "image", (84, 96, 3)),
        ("observation.state", "vector", (9,)),
    ]
    assert (task.observation_steps, task.horizon, task.action_dim, task.rate_hz) == (5, 4, 4, 20.0)
    assert [item.name for item in task.cameras] == ["observation.image"]
    assert [item.name for item in task.vectors] == ["observation.state"]
    assert isinstance(task, NetworkTask) and task.limits is short.limits


def test_an_empty_space_is_the_task():
    task = network_task(Space(), PLACE)
    assert [(item.name, item.shape) for item in task.observation] == [(i.name, i.shape) for i in PLACE.observation]
    assert (task.observation_steps, task.horizon, task.action_dim, task.rate_hz) == (2, 16, 10, 10)
