"""A folder with ``arms.yaml``: several systems whose arms one policy moves together."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from bid_ros.core.arms import FILE as ARMS_FILE
from bid_ros.core.arms import ArmPlace, Arms, arms_folder, check_apart
from bid_ros.core.errors import BidError
from bid_ros.core.settings import load_settings, settings
from bid_ros.core.topics import check_namespace
from bid_ros.decoding.decoder_config import MOST_SAMPLES
from bid_ros.system.description import NodeSpec, describe
from bid_ros.system.folder import FILE, POLICY, System, TwinSettings, find_system
from bid_ros.system.run import RunArguments
from bid_ros.teleop.base import DEVICES

EPISODE: Final = "episode"
HOSTS: Final = ("arms_policy", "arms_episode")
"""The two nodes that the arms share. The last one's end is the end of the run."""
OF_ONE_SYSTEM: Final = ("task", "arm_config", "bundle", "bundle_task")
"""Parameters of the nodes of one arm that the shared ones have for each arm."""
OF_ONE_ARM: Final = ("robot_ip", "takeover", "shadow", "human", "rviz", "device_settings", "decision_rate")
"""Arguments of a run that only a system of one arm takes."""


@settings
class ArmSite(ArmPlace):
    """One arm.

    Attributes:
        system: folder of its system, relative to this one; or the name of a shipped system.
    """

    system: str = ""


@settings
class ArmsPolicySettings:
    """The policy of all arms.

    Attributes:
        bundle: folder, relative to this one, of a policy that was trained for all arms. Empty: the policy of each arm's
            own system draws that arm's part of the samples, and one decoder chooses among the joined ones.
        decoder, samples, action_horizon: as in ``system.yaml``.
    """

    bundle: str = ""
    decoder: str = "bid"
    samples: Annotated[int, Field(ge=1, le=MOST_SAMPLES)] = 16
    action_horizon: Annotated[int, Field(ge=1, le=64)] = 1


@settings
class ArmsSettings:
    """The content of ``arms.yaml``.

    Attributes:
        name: of the joint task, which the bundle of a policy for all arms names.
        arms: the arms by name. Each has the topics of its own system below this name.
        policy: that moves all of them.
        twin: settings of the twins.
    """

    name: str
    arms: dict[str, ArmSite]
    policy: ArmsPolicySettings = ArmsPolicySettings()
    twin: TwinSettings = TwinSettings()


@dataclass(frozen=True)
class ArmsSystem:
    """The folder of a system of several arms.

    Attributes:
        folder: holds ``arms.yaml``.
        settings: content of that file.
    """

    folder: Path
    settings: ArmsSettings

    @cached_property
    def systems(self) -> Mapping[str, System]:
        """The system of each arm. Raises BidError if there is none."""
        places = {arm: self.folder / site.system for arm, site in self.settings.arms.items()}
        return {
            arm: find_system(place if (place / FILE).is_file() else self.settings.arms[arm].system)
            for arm, place in places.items()
        }

    @cached_property
    def commanded(self) -> Arms:
        """The joint task as the arms' own systems command it."""
        return Arms(self.settings.name, {arm: system.task for arm, system in self.systems.items()})

    def decided_by(self, folders: tuple[str, ...]) -> Arms:
        """Return the joint task as the policies of these bundles were made for it."""
        if len(folders) == 1:
            return self.commanded
        return Arms(self.settings.name, {arm: system.policy_task for arm, system in self.systems.items()})

    def bundles(self, asked: str = "") -> tuple[str, ...]:
        """Return the folder of the bundle of all arms, or those of each arm's own.

        Raises:
            BidError: an arm has none; or its system wants a signed bundle, which nothing checks here.
        """
        if signed := [arm for arm, item in self.systems.items() if item.settings.policy.signed_by]:
            raise BidError(f"the system of the arm '{signed[0]}' names signed_by; valid only in a system of one arm")
        if asked or self.settings.policy.bundle:
            return (str(asked or self.folder / self.settings.policy.bundle),)
        return tuple(str(system.bundle()) for system in self.systems.values())

    def check(self) -> None:
        """Raise BidError unless the arms have one joint task, and workspaces that are apart."""
        tasks = self.commanded.tasks
        check_apart(self.settings.arms, tasks)

    def run(self, arguments: RunArguments) -> RunArguments:
        """Return the arguments of a run with what ``arms.yaml`` says where they say nothing.

        Raises:
            BidError: an argument is given that only a system of one arm takes.
        """
        for name in OF_ONE_ARM:
            if getattr(arguments, name):
                raise BidError(
                    f"{name} is {getattr(arguments, name)!r}, but {self.folder.name} has {len(self.systems)} arms, "
                    "which run in their twins only; valid with the system of one arm"
                )
        if not arguments.prepare:
            raise BidError(f"prepare is false, but {self.folder.name} has {len(self.systems)} arms; valid with one arm")
        policy, twin = self.settings.policy, self.settings.twin
        return replace(
            arguments,
            driver=arguments.driver or POLICY,
            decoder=arguments.decoder or policy.decoder,
            samples=arguments.samples or policy.samples,
            action_horizon=arguments.action_horizon or policy.action_horizon,
            decision_rate=0.0,
            moving=twin.moving if arguments.moving is None else arguments.moving,
        )


def find_arms(named: str | Path) -> ArmsSystem | None:
    """Return the system of several arms in a folder, or the shipped one of a name; None if there is none.

    Raises:
        BidError: its ``arms.yaml`` is not valid, its arms have no joint task, or their workspaces overlap.
    """
    if (folder := arms_folder(named)) is None:
        return None
    found = ArmsSystem(folder.resolve(), load_settings(ArmsSettings, folder / ARMS_FILE, "arms file"))
    found.check()
    return found


def describe_arms(found: ArmsSystem, arguments: RunArguments) -> list[NodeSpec]:
    """Return the nodes of a system of several arms: of each arm those of its own system, and two that they share.

    Raises:
        BidError: as :func:`bid_ros.system.description.describe`; or the driver is a person's device, bundle and decoder
            do not fit, or an argument is given that only a system of one arm takes.
    """
    given = found.run(arguments)
    if given.driver != POLICY and DEVICES.find(str(given.driver)).help:
        raise BidError(f"driver is '{given.driver}', which a person holds; valid for several arms are policy, scripted")
    space, out = check_namespace(given.namespace), Path(given.out)
    bundles = found.bundles(given.bundle) if given.driver == POLICY else ()
    if bundles:
        _check_policy(found, bundles, given)
    specs: list[NodeSpec] = []
    shared: dict[str, Mapping[str, Any]] = {}
    for index, (arm, system) in enumerate(found.systems.items()):
        bundle = bundles[index % len(bundles)] if bundles else ""
        own = replace(given, namespace=f"{space}/{arm}", out=str(out / arm), bundle=bundle)
        partners = [f"{space}/{other}" for other in found.systems if other != arm]
        for spec in describe(system, own):
            if spec.name in (POLICY, EPISODE):
                shared.setdefault(spec.name, spec.parameters)
                continue
            more = {"partners": partners} if spec.name == "safety" else {}
            specs.append(replace(spec, arm=arm, parameters={**spec.parameters, **more}))
    heard = [f"{spec.arm}/{spec.name}" for spec in specs] + [f"{arm}/{POLICY}" for arm in found.systems if bundles]
    timeout_s = given.timeout or found.commanded.task.episode_timeout / given.slow
    run = {"nodes": heard, "system": str(found.folder), "out": str(out.resolve()), "timeout_s": float(timeout_s)}
    named = [system.bundle_parameters().get("bundle_task", "") for system in found.systems.values()]
    drawn = {"bundles": list(bundles), "bundle_tasks": named if len(bundles) > 1 else [""]}
    hosts: dict[str, tuple[str, dict[str, Any]]] = {HOSTS[0]: (POLICY, drawn), HOSTS[1]: (EPISODE, run)}
    for host, (name, changes) in hosts.items():
        if name in shared:
            kept = {key: value for key, value in shared[name].items() if key not in OF_ONE_SYSTEM}
            parameters = {**kept, **_of_arms(found), **changes}
            specs.append(NodeSpec(host, f"{host}_node", parameters, space, given.log_level))
    return specs


def _check_policy(found: ArmsSystem, folders: tuple[str, ...], given: RunArguments) -> None:
    from bid_ros.policy.arms import arms_decoder, joint_bundle, load_bundles  # with onnx, which takes a while

    arms = found.decided_by(folders)
    bundle = joint_bundle(load_bundles(folders, arms))
    arms_decoder(str(given.decoder), bundle, arms, given.samples or 1, given.action_horizon or 1)


def _of_arms(found: ArmsSystem) -> dict[str, Any]:
    """Return the parameters that say to a shared node which arms there are."""
    return {
        "name": found.settings.name,
        "arms": list(found.systems),
        "tasks": [str(system.file("task.yaml")) for system in found.systems.values()],
        "arm_configs": [str(system.file("robot.yaml")) for system in found.systems.values()],
        "twin": True,
    }
