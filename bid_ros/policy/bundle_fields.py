"""The fields of ``bundle.yaml``, beside the section of the policy's family: ``docs/reference/bundles.md``."""

from typing import Annotated, Any, Final

from pydantic import Field

from bid_ros.core.errors import BundleError
from bid_ros.core.settings import settings
from bid_ros.policy.anchor import ActionReference
from bid_ros.policy.spaces.config import Space

FORMAT: Final = 1
FORMAT_WITH_SPACE: Final = 2  # the first that knows the fields SPACED
SPACED: Final = ("space", "action_weights")
DIFFUSION: Final = "diffusion"  # the family of bundles that name none
Numbers = tuple[float, ...]
Roles = dict[str, str]


@settings(error=BundleError)
class Range:
    """What is mapped to [-1, 1].

    Attributes:
        minimum, maximum: a number for each value; of the actions also a list of those for each row of a chunk.
    """

    minimum: Numbers | tuple[Numbers, ...]
    maximum: Numbers | tuple[Numbers, ...]


@settings(error=BundleError)
class Normalisation:
    """Ranges of the training data, in the units of the task, or of the space if there is one.

    Attributes:
        observation: of each vector feature, by its name; with a space, of each vector of the network.
        action: of an action; with a space, of a row that the network predicts.
    """

    observation: dict[str, Range]
    action: Range


@settings(error=BundleError)
class GraphFiles:
    """Names of the files of the graphs, by their role in the family.

    Attributes:
        strong: of the policy.
        weak: of the early checkpoint, null if there is none.
    """

    strong: Roles
    weak: Roles | None


@settings(error=BundleError)
class Manifest:
    """What ``bundle.yaml`` says beside the section of the policy's family.

    Attributes:
        format: of the file.
        name: of the bundle.
        task, task_signature, observation_steps, horizon, action_dim: of the task it was made for.
        normalisation: see there.
        action_spread: standard deviation of each action value in the training data, task units.
        graphs: see there.
        files: sha256 of every other file in the folder, hexadecimal.
        provenance: where it comes from; for people.
        action_reference: where predicted positions count from. With a space this is said there.
        family: of policies.
        space: what the network sees and predicts; format 2.
        action_weights: factor of each action feature in the distances of decoders; format 2.
    """

    format: Annotated[int, Field(ge=FORMAT, le=FORMAT_WITH_SPACE)]
    name: str
    task: str
    task_signature: str
    observation_steps: int
    horizon: int
    action_dim: int
    normalisation: Normalisation
    action_spread: tuple[Annotated[float, Field(ge=0)], ...]
    graphs: GraphFiles
    files: Roles
    provenance: dict[str, Any]
    action_reference: ActionReference = "base"
    family: str = DIFFUSION
    space: Space | None = None
    action_weights: dict[str, Annotated[float, Field(ge=0)]] | None = None

    def __post_init__(self) -> None:
        for name in SPACED:
            if self.format < FORMAT_WITH_SPACE and getattr(self, name):
                raise BundleError(f"format is {self.format}, which has no '{name}'; valid is {FORMAT_WITH_SPACE}")
        if self.space is not None and self.action_reference != "base":
            raise BundleError(
                f"action_reference is '{self.action_reference}' beside a space; valid is base, and a reference in the "
                "parts of space.action"
            )
