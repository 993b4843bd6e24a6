"""What an importer hands over: a policy in its network's own terms."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import BidError
from bid_ros.policy.act.settings import ActSettings
from bid_ros.policy.diffusion.sampler import DiffusionConfig
from bid_ros.policy.normalise import LinearNormaliser
from bid_ros.policy.vqbet.codes import VqBetSettings

if TYPE_CHECKING:
    from torch import nn

    from bid_ros.importing.networks.observation import ObservationNetwork

GraphExample: TypeAlias = "tuple[nn.Module, dict[str, NDArray[Any]], str, dict[str, dict[int, str]]]"
"""Network, example inputs, name of the output and open extents of a graph."""


@dataclass(frozen=True)
class NetworkFeature:
    """What a network observes.

    Attributes:
        name: in the checkpoint, such as ``observation.state``.
        shape: ``(height, width, 3)`` of an image, else ``(size,)``.
    """

    name: str
    shape: tuple[int, ...]

    @property
    def is_image(self) -> bool:
        """Whether it is a camera's image."""
        return len(self.shape) == 3


def network_feature(name: str, shape: Any, image: bool) -> NetworkFeature | None:
    """Return a feature whose checkpoint says ``[3, height, width]`` of an image, else ``[size]``; None: it does not."""
    if not isinstance(shape, list) or not all(type(extent) is int and extent > 0 for extent in shape):
        return None
    if len(shape) != (3 if image else 1) or (image and shape[0] != 3):
        return None
    return NetworkFeature(name, (*shape[1:], 3) if image else tuple(shape))


@dataclass(frozen=True, eq=False)
class ImportedPolicy:
    """A policy of another project, with its weights.

    Attributes:
        source: file or folder that it was read from.
        kind: type of the policy in its project.
        features: what it observes, in the order of its project.
        observation_steps, horizon, action_dim: To, H and D of the network.
        encoder: observation to condition.
        denoiser: noisy chunks, step and condition to prediction.
        settings: how it is sampled.
        observation: normaliser by vector feature.
        action: normaliser of the actions.
        action_spread: ``(D,)`` standard deviation of the actions in the training data.
        notes: what a person should know, a sentence each.
        provenance: plain values for the bundle.
        past: rows of a chunk before the first that is executed; None: To - 1.
        family: of policies.
        graph_examples: for :func:`bid_ros.importing.write_bundle.write_graphs`, of a family that does not denoise.
    """

    source: str
    kind: str
    features: tuple[NetworkFeature, ...]
    observation_steps: int
    horizon: int
    action_dim: int
    encoder: "ObservationNetwork"
    denoiser: "nn.Module"
    settings: DiffusionConfig | VqBetSettings | ActSettings
    observation: Mapping[str, LinearNormaliser]
    action: LinearNormaliser
    action_spread: NDArray[np.float64]
    notes: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    past: int | None = None
    family: str = "diffusion"
    graph_examples: "Callable[[ImportedPolicy], dict[str, GraphExample]] | None" = None

    @property
    def past_rows(self) -> int:
        """Rows of a chunk before the first that is executed."""
        return self.observation_steps - 1 if self.past is None else self.past


@dataclass(frozen=True)
class ImportOptions:
    """What a person may say about a checkpoint.

    Attributes:
        sampler: ``ddim`` or ``ddpm``, of a flow ``euler`` or ``rk4``, in place of the checkpoint's own; empty: its own.
            The network is the same.
        sampling_steps: steps of a sample; None: the checkpoint's own.
        text: what the robot is told, for a policy that reads a text; empty: the description of the task.
        clip: folder with ``config.json`` and ``tokenizer.json`` of the CLIP that a policy reads texts with.
        cameras: images of a policy whose checkpoint does not name them.
        ignored: fields of the configuration that are not known here, and that change nothing.
    """

    sampler: str = ""
    sampling_steps: int | None = None
    text: str = ""
    clip: str = ""
    cameras: tuple[NetworkFeature, ...] = ()
    ignored: tuple[str, ...] = ()


def denoising(fields: Any, sampler: str, steps: int | None, options: ImportOptions) -> DiffusionConfig:
    """Return how diffusers samples a network: leading steps, and the predicted noise kept.

    Args:
        fields: of the checkpoint, by the names that diffusers has for them.
        sampler: of the checkpoint.
        steps: ``num_inference_steps`` of the checkpoint, None: as many as in training.
        options: what a person says about it.

    Raises:
        BidError: the sampler is unknown, or the steps are more than those of training.
    """
    chosen: Any = options.sampler or sampler
    if chosen not in ("ddim", "ddpm"):
        raise BidError(f"sampler is '{chosen}'; valid for a policy that denoises are ddim and ddpm")
    return DiffusionConfig(
        train_steps=fields.num_train_timesteps,
        beta_schedule=fields.beta_schedule,
        beta_start=fields.beta_start,
        beta_end=fields.beta_end,
        prediction=fields.prediction_type,
        sampling_steps=options.sampling_steps or steps or fields.num_train_timesteps,
        clip=fields.clip_sample_range if fields.clip_sample else None,
        spacing="leading",
        sampler=chosen,
        kept_noise="predicted",
    )


def _told(value: Any) -> dict[str, Any]:
    """Return the parts of a value that may differ, by name; the name of a value without parts is empty."""
    if isinstance(value, tuple):
        return {"": ", ".join(f"{item.name} {item.shape}" for item in value)}
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else {"": value}


def check_same(strong: ImportedPolicy, weak: ImportedPolicy, what: str = "is no earlier checkpoint of") -> None:
    """Raise BidError unless two policies differ in their weights alone, as two checkpoints of one training do.

    ``what``: what the second is not to the first, for the sentence.
    """
    for name in ("kind", "features", "observation_steps", "horizon", "action_dim", "past_rows", "settings"):
        wanted, found = (_told(getattr(policy, name)) for policy in (strong, weak))
        for part in sorted(wanted.keys() | found.keys()):
            if wanted.get(part) != found.get(part):
                which = f"{name.replace('_', ' ')} {part}".strip()
                raise BidError(
                    f"{weak.source} {what} {strong.source}: its {which} is {found.get(part)}; "
                    f"valid is {wanted.get(part)}"
                )
    pairs = [("action", strong.action, weak.action)]
    pairs += [(name, strong.observation[name], weak.observation[name]) for name in strong.observation]
    for name, one, other in pairs:
        if not (np.array_equal(one.minimum, other.minimum) and np.array_equal(one.maximum, other.maximum)):
            raise BidError(
                f"{weak.source} {what} {strong.source}: the statistics of '{name}' differ; valid are two checkpoints "
                "of one training"
            )
