"""Maps task features to an imported policy's columns: the space of its bundle.

A person may describe it. Otherwise the section ``data`` of the task says it, which names columns of data sets in the
same way: a policy's observations and actions are those of the data set that it was trained on.
"""

from collections.abc import Sequence
from dataclasses import replace

from bid_ros.core.data_keys import split_key
from bid_ros.core.errors import BidError
from bid_ros.core.feature import Feature
from bid_ros.core.task import Task
from bid_ros.importing.policy import ImportedPolicy, NetworkFeature
from bid_ros.policy.spaces.config import ObservedFeature, Part, Space
from bid_ros.policy.spaces.policy import rows_of
from bid_ros.policy.spaces.view import network_task

ACTION = "action"


def space_for(policy: ImportedPolicy, task: Task, described: Space | None = None) -> Space:
    """Return the space of the policy's bundle, with the policy's own steps and rows.

    Args:
        policy: in its network's terms.
        task: to be used with it.
        described: what a person says about columns; its steps and rows may be left out. None: as the task's section
            ``data`` says, or as equal names do.

    Raises:
        BidError: a feature of the policy is described by nothing, or by something of another size.
        BundleError: the space does not fit the task.
    """
    columns = described or Space()
    if not columns.observation:
        columns = replace(columns, observation=tuple(_observed(policy, item, task) for item in policy.features))
    if not columns.action:
        columns = replace(
            columns, action=_parts(policy, ACTION, policy.action_dim, task.action, _keys(task, ACTION), _units(task))
        )
    space = replace(
        columns, observation_steps=policy.observation_steps, horizon=policy.horizon, past_rows=policy.past_rows
    )
    for name in ("observation_steps", "horizon", "past_rows"):
        said = getattr(columns, name)
        if said not in (None, getattr(space, name)):
            raise BidError(f"the space has {name} {said}; valid for {policy.source} is {getattr(space, name)}")
    _check(policy, space, task)
    return space


def _check(policy: ImportedPolicy, space: Space, task: Task) -> None:
    """Raise BidError if the network's view by the space is not what the policy has."""
    rows_of(space, task)  # raises if they end before the task's
    view = network_task(space, task)
    found = {item.name: item.shape for item in view.observation}
    wanted = {item.name: item.shape for item in policy.features}
    if found != wanted:
        described = ", ".join(f"{name} {shape}" for name, shape in found.items())
        raise BidError(
            f"the space describes the inputs {described}; {policy.source} has {_listed(policy.features)}: valid are "
            "these"
        )
    if view.action_dim != policy.action_dim:
        raise BidError(
            f"the space describes an action of {view.action_dim} columns; {policy.source} has {policy.action_dim}"
        )


def _observed(policy: ImportedPolicy, item: NetworkFeature, task: Task) -> ObservedFeature:
    keys = _keys(task, "observation")
    if not item.is_image:
        return ObservedFeature(
            name=item.name, columns=_parts(policy, item.name, item.shape[0], task.vectors, keys, _units(task))
        )
    short = item.name.removeprefix("observation.images.").removeprefix("observation.")
    for camera in task.cameras:
        if keys.get(camera.name, camera.name) in (item.name, short):
            size = None if camera.shape == item.shape else (item.shape[0], item.shape[1])
            return ObservedFeature(name=item.name, camera=camera.name, size=size)
    raise BidError(
        f"{policy.source} observes the images '{item.name}', which task '{task.name}' has not: its cameras are "
        f"{', '.join(camera.name for camera in task.cameras) or 'none'}; say which one it is in the task's section "
        "data, or with --space"
    )


def _parts(
    policy: ImportedPolicy,
    name: str,
    size: int,
    features: Sequence[Feature],
    keys: dict[str, str],
    units: dict[str, str],
) -> tuple[Part, ...]:
    """Return the parts of a vector of the network: one feature of its name, or those whose keys name its columns."""
    found: list[tuple[Feature, tuple[int, ...]]] = []
    for feature in features:
        key, columns = split_key(keys.get(feature.name, feature.name))
        if key != name and not (name == ACTION and feature.name not in keys and len(features) == 1):
            continue
        numbers = range(feature.size) if columns is None else columns
        if any(isinstance(column, str) for column in numbers):
            raise BidError(
                f"the task's section data names columns of '{name}' by words, which {policy.source} does not know; "
                "valid are numbers, or --space"
            )
        found.append((feature, tuple(int(column) for column in numbers)))
    covered = sorted(column for _, columns in found for column in columns)
    fitting = all(len(columns) == feature.size for feature, columns in found)
    if covered != list(range(size)) or not fitting:
        raise BidError(
            f"{policy.source} has '{name}' of {size} columns; the task ({_words(features, keys)}) describes "
            f"{covered or 'none'} of them; valid is each of 0 to {size - 1} once, in the task's section data or with "
            "--space"
        )
    return tuple(Part(feature=feature.name, at=columns, unit=units.get(feature.name, "")) for feature, columns in found)


def _words(features: Sequence[Feature], keys: dict[str, str]) -> str:
    return ", ".join(f"{item.name}: {keys.get(item.name, item.name)}" for item in features)


def _keys(task: Task, group: str) -> dict[str, str]:
    return {} if task.data is None else dict(getattr(task.data, group))


def _units(task: Task) -> dict[str, str]:
    return {} if task.data is None else dict(task.data.unit)


def _listed(features: Sequence[NetworkFeature]) -> str:
    return ", ".join(f"{item.name} {item.shape}" for item in features)
