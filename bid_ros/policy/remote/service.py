"""What ``bid serve`` answers: samples of a bundle for its own clients, one chunk for those of openpi."""

import math
import time
from collections.abc import Mapping
from typing import Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import BidError, RemoteError
from bid_ros.core.feature import Feature
from bid_ros.core.observation import Observation, task_history
from bid_ros.core.task import Task
from bid_ros.decoding import Guidance, StartMode
from bid_ros.decoding.decoder_config import MOST_SAMPLES
from bid_ros.policy.base import Bundle, Policy, policy_history
from bid_ros.policy.ranges import task_ranges
from bid_ros.policy.registry import most_samples
from bid_ros.policy.remote.frames import KeptFrames
from bid_ros.policy.remote.wire import ACTIONS, EXTENSION, checked, generator_of, generator_words

VERSION: Final = 1
OWN: Final = ("n", "weak", "seed", "start", "start_mode", "guidance", "number", "kept", "warm_up")  # of the extension
GUIDANCE: Final = ("target", "weights", "clip")


class PolicyService:
    """Answers questions about one policy. One thread only.

    Args:
        policy: samples.
        bundle: its bundle.
        task: its task.

    Raises:
        BidError: the policy wants other observed steps than the task says, which clients do not send.
    """

    def __init__(self, policy: Policy, bundle: Bundle, task: Task) -> None:
        wanted, sent = policy_history(policy, task), task_history(task)
        if wanted != sent:
            raise BidError(
                f"bundle {bundle.path} wants {wanted.steps} observed steps, one every {wanted.dt_ns / 1e6:g} ms, but "
                f"clients send those of task '{task.name}'; valid for a server are {sent.steps}, one every "
                f"{sent.dt_ns / 1e6:g} ms"
            )
        self._policy, self._bundle, self._task = policy, bundle, task

    @property
    def largest(self) -> int:
        """Bytes of the largest question that is taken: twice an observation of numbers in eight bytes."""
        numbers = sum(item.size * np.dtype(item.dtype).itemsize for item in self._task.observation)
        return 2 * self._task.observation_steps * numbers + 1_000_000

    def metadata(self) -> dict[str, Any]:
        """Return what a client is told first: the bundle, its task, and what decoders need to know of it.

        Of a bundle with a space the ranges are those of the task's limits: its own are of the network's numbers.
        """
        bundle, task, can = self._bundle, self._task, self._policy.capabilities
        observation, action = bundle.observation, bundle.action
        if bundle.space is not None:
            observation, action, _ = task_ranges(task)
        said = {
            "version": VERSION,
            "name": bundle.name,
            "sha256": bundle.sha256,
            "task": task.name,
            "task_signature": task.signature(),
            "observation_steps": task.observation_steps,
            "horizon": task.horizon,
            "action_dim": task.action_dim,
            "has_weak": self._policy.has_weak,
            "has_starts": can.starts,
            "has_gradients": can.gradients,
            "most_samples": most_samples(bundle),
            "keeps_frames": True,
            "inflates": True,
            "made_up_rows": can.made_up_rows,
            "runtime": self._policy.runtime,
            "observation": {name: item.to_dict() for name, item in observation.items()},
            "action": action.to_dict(),
            "action_spread": bundle.action_spread.tolist(),
            "action_weights": dict(bundle.action_weights),
        }
        return {EXTENSION: said}

    def answer(
        self, content: Mapping[str, Any], rng: np.random.Generator, frames: KeptFrames | None = None
    ) -> dict[str, Any]:
        """Answer one question.

        Args:
            content: each feature by its name, ``(To, *shape)``, or ``(*shape)`` for a client that has no history: the
                value is repeated then, as at the start of an episode. Under ``bid`` an own client says ``n`` and
                ``weak``, numbers of samples, ``seed``, see :func:`generator_of`, and may say ``start`` and
                ``start_mode``, ``guidance``, of :class:`bid_ros.decoding.Guidance`, and ``kept``, see
                :mod:`bid_ros.policy.remote.frames`; or only ``warm_up``, a number of samples.
            rng: source of the noise if no seed is given.
            frames: images of the client's last question. None: it has sent none.

        Returns:
            ``actions``, the first strong sample from the present row on, ``(H - To + 1, D)``; and for an own client
            under ``bid`` all samples, the number of the question and the generator's state after sampling; or that
            images are ``missing``, if a question names images that are not known.

        Raises:
            BidError: something of it is not valid.
        """
        begin = time.monotonic()
        wanted = content.get(EXTENSION, {})
        if not isinstance(wanted, dict) or not set(wanted) <= set(OWN):
            raise RemoteError(f"'{EXTENSION}' is not valid; valid is a map with some of {', '.join(OWN)}")
        if "warm_up" in wanted:
            self._policy.warm_up(_count(wanted, "warm_up", 1))
            return {EXTENSION: {}}
        if "kept" in wanted:
            task = self._task
            images = (frames or KeptFrames()).whole(content, wanted["kept"], task.cameras, task.observation_steps)
            if images is None:
                return {EXTENSION: {"missing": True, "number": wanted.get("number")}}
            content = {**content, **images}
        strong, weak = _count(wanted, "n", 1), _count(wanted, "weak", 0)
        source = generator_of(wanted["seed"]) if "seed" in wanted else rng
        encoded = self._policy.encode(self._observation(content), weak=weak > 0)
        chunks, others = self._policy.sample(
            encoded, strong, weak, source, *self._start(wanted), **self._guidance(wanted)
        )
        answer: dict[str, Any] = {
            ACTIONS: np.ascontiguousarray(chunks[0, self._task.observation_steps - 1 :]),
            "server_timing": {"infer_ms": 1000 * (time.monotonic() - begin)},
        }
        if EXTENSION in content:
            said = {"strong": chunks, "weak": others, "seed": generator_words(source), "number": wanted.get("number")}
            answer[EXTENSION] = said
        return answer

    def _start(self, wanted: Mapping[str, Any]) -> tuple[NDArray[np.float64] | None, StartMode]:
        mode = wanted.get("start_mode", "noise")
        if mode not in get_args(StartMode):
            raise RemoteError(f"start_mode is '{mode}'; valid are {', '.join(get_args(StartMode))}")
        if wanted.get("start") is None:
            return None, mode
        return checked(wanted, "start", (self._task.horizon, self._task.action_dim)), mode

    def _guidance(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        said, task = wanted.get("guidance"), self._task
        if said is None:
            return {}
        if not self._policy.capabilities.gradients:
            raise RemoteError(
                f"guided samples need gradients, which runtime '{self._policy.runtime}' has not; valid is a server of "
                "bid serve --runtime torch"
            )
        if not isinstance(said, dict) or set(said) != set(GUIDANCE):
            raise RemoteError(f"guidance is not valid; valid is a map with {', '.join(GUIDANCE)}")
        target, weights = (
            checked(said, "target", (task.horizon, task.action_dim)),
            checked(said, "weights", (task.horizon,)),
        )
        clip = said["clip"]
        if not isinstance(clip, int | float) or not 0 <= clip < math.inf or weights.min() < 0 or weights.max() > 1:
            raise RemoteError("guidance has impossible numbers; valid are weights of 0 to 1, and a clip of at least 0")
        return {"guidance": Guidance(target, weights, float(clip))}

    def _observation(self, content: Mapping[str, Any]) -> Observation:
        values = {item.name: _value(item, content.get(item.name), self._task) for item in self._task.observation}
        return Observation(0, values)


def _value(feature: Feature, value: Any, task: Task) -> NDArray[Any]:
    whole = (task.observation_steps, *feature.shape)
    if isinstance(value, np.ndarray) and value.shape == feature.shape:
        value = np.repeat(value[None], task.observation_steps, axis=0)
    if not isinstance(value, np.ndarray) or value.shape != whole:
        found = f"has shape {value.shape}" if isinstance(value, np.ndarray) else "is missing or no array"
        raise RemoteError(f"observation '{feature.name}' {found}; valid is {whole} or {feature.shape}")
    if feature.kind == "image":
        if value.dtype != feature.dtype:
            raise RemoteError(f"image '{feature.name}' has type {value.dtype}; valid is {feature.dtype}")
        return value
    return checked({feature.name: value}, feature.name, whole)


def _count(wanted: Mapping[str, Any], name: str, least: int) -> int:
    value = wanted.get(name, least)
    if type(value) is not int or not least <= value <= MOST_SAMPLES:
        raise RemoteError(f"{name} is {str(value)[:40]}; valid is {least} to {MOST_SAMPLES}")
    return value
