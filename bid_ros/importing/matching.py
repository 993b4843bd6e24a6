"""Which feature of a task is which feature of an imported policy, where the two are equal in content."""

from collections.abc import Sequence

from bid_ros.core.data_keys import split_key
from bid_ros.core.errors import BidError
from bid_ros.core.task import Feature, Task
from bid_ros.importing.policy import ImportedPolicy, NetworkFeature


def match_features(policy: ImportedPolicy, task: Task) -> dict[str, str]:
    """Return the task's name of each feature of the policy.

    A feature of the task has the policy's name, or the task's section ``data`` says this name, or it is a camera with
    the last part of the name: ``wrist`` is ``observation.images.wrist``.

    Args:
        policy: in its network's terms.
        task: to be used with it.

    Raises:
        BidError: a feature of one has none in the other, or one of another size; or steps, horizon or action differ.
    """
    _check_sizes(policy, task)
    found: dict[str, str] = {}
    for item in policy.features:
        own = next((feature for feature in task.observation if item.name in _keys(feature, task)), None)
        if own is None:
            raise BidError(
                f"{policy.source} observes '{item.name}' {item.shape}, which task '{task.name}' has not; it observes "
                f"{_listed(task.observation)}; say what belongs together in the task's section data, or with --space"
            )
        if own.shape != item.shape:
            raise BidError(
                f"{policy.source} observes '{item.name}' {item.shape}, but '{own.name}' of task '{task.name}' has "
                f"{own.shape}; valid are equal shapes, or a description with --space"
            )
        found[item.name] = own.name
    left = [feature for feature in task.observation if feature.name not in found.values()]
    if left:
        raise BidError(
            f"task '{task.name}' observes {_listed(left)}, which {policy.source} does not; it observes "
            f"{', '.join(f'{item.name} {item.shape}' for item in policy.features)}"
        )
    return found


def _check_sizes(policy: ImportedPolicy, task: Task) -> None:
    for name, wanted, own in (
        ("observation_steps", policy.observation_steps, task.observation_steps),
        ("horizon", policy.horizon, task.horizon),
        ("the size of the action", policy.action_dim, task.action_dim),
        ("the first row that is executed", policy.past_rows, task.observation_steps - 1),
    ):
        if wanted != own:
            raise BidError(
                f"{policy.source}: {name} is {wanted}, task '{task.name}' says {own}; valid are equal numbers, or a "
                "description with --space"
            )
    if task.data is None or not task.data.action:
        return
    columns: list[int | str] = []
    for feature, own_columns in task.action_columns:
        _, given = split_key(task.data.action.get(feature.name, feature.name))
        columns += given or range(own_columns.start, own_columns.stop)
    if columns != list(range(policy.action_dim)):
        raise BidError(
            f"task '{task.name}' has the action's columns in the order {columns}; valid without --space is the order "
            f"of {policy.source}, 0 to {policy.action_dim - 1}"
        )


def _keys(feature: Feature, task: Task) -> tuple[str, ...]:
    """Return the names in data sets that a feature answers to."""
    given = None if task.data is None else task.data.observation.get(feature.name)
    if given is not None:
        key, columns = split_key(given)
        whole = columns is None or columns == tuple(range(feature.size))
        return (key,) if whole else ()
    camera = (f"observation.images.{feature.name}",) if feature.kind == "image" else ()
    return (feature.name, *camera)


def _listed(features: Sequence[Feature | NetworkFeature]) -> str:
    return ", ".join(f"{item.name} {item.shape}" for item in features)
