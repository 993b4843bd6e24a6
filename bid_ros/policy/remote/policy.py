"""A policy that samples elsewhere. A decision is one question; what it got before is never used again."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import DecodingError, RemoteError
from bid_ros.core.observation import Observation, blank_observation, check_observed
from bid_ros.core.task import Task
from bid_ros.decoding import Guidance, StartMode
from bid_ros.policy.base import Bundle, Capabilities
from bid_ros.policy.remote.config import REMOTE, RemoteConfig
from bid_ros.policy.remote.dial import read_key
from bid_ros.policy.remote.frames import SentFrames
from bid_ros.policy.remote.link import Link
from bid_ros.policy.remote.wire import (
    ACTIONS,
    EXTENSION,
    checked,
    deflated,
    generator_words,
    own_words,
    pack,
    take_words,
)

Array = NDArray[np.float64]
CONNECT_S, START_S = 5.0, 60.0  # for the first connection, and for compiling there
LARGEST: Final = 16 * 1024 * 1024  # bytes; 512 samples of 64 rows of 32 numbers are half of it


class RemotePolicy:
    """Samples on a server of ``bid serve``, or on one that only speaks openpi's protocol. One thread only.

    ``bid serve`` gets each image once. It gets the state of the generator, and returns its state after sampling. So the
    same generator gives the same chunks, bit for bit, as the bundle there would give here. A server of openpi has
    randomness of its own, and gives one chunk an answer: N samples are N questions, sent together. Its chunks begin at
    the newest observation. The rows before that, which only decoders see, repeat its first row.

    Args:
        bundle: of the family ``remote``.
        task: the task it was checked against.

    Raises:
        RemoteError: the server does not answer, or serves something else than the bundle was written for.
    """

    runtime = REMOTE

    def __init__(self, bundle: Bundle, task: Task) -> None:
        self._config: RemoteConfig = bundle.settings
        self._task, self._weak = task, bundle.weak is not None
        self._limit_s, self._number = self._config.timeout_ms / 1000, 0
        self._sent, self._sparing = SentFrames([item.name for item in task.cameras]), False
        key = read_key(self._config.api_key_file)
        self._vitals: dict[str, object] = {}
        self.capabilities = Capabilities(
            starts=False,
            made_up_rows=task.observation_steps - 1,
            instruct=None if self._config.serves else self._instruct,
            vitals=lambda: self._vitals,
        )
        self._prompt: str = self._config.prompt
        self._deflating = False
        config = self._config
        self._link = Link(config.address, LARGEST, self._greet, key, config.certificate)
        self._link.connect(CONNECT_S)

    @property
    def has_weak(self) -> bool:
        """Whether the server has a weak policy."""
        return self._weak

    def encode(self, observation: Observation, weak: bool = True) -> Observation:
        """Check an observation. It is sent with the question for samples.

        Raises:
            ObservationError: a feature is missing, or has another shape than the task says.
        """
        check_observed(observation.values, self._task, self._task.observation_steps)
        return observation

    def sample(
        self,
        encoded: Observation,
        strong: int,
        weak: int,
        rng: np.random.Generator,
        start: Array | None = None,
        start_mode: StartMode = "noise",
        guidance: Guidance | None = None,
    ) -> tuple[Array, Array | None]:
        """Let the server sample, as :meth:`bid_ros.policy.base.Policy.sample` says. The generator is only changed by an
        answer.

        Raises:
            DecodingError: a count is not valid, or the server cannot draw such samples.
            RemoteError: there is no answer in time, or it is no ``(N, H, D)`` of finite numbers. The next call
                connects again.
        """
        if strong < 1 or weak < 0 or (weak and not self._weak):
            valid = "1 or more and 0 or more" if self._weak else "1 or more and 0, as the server has no weak policy"
            raise DecodingError(f"{strong} strong and {weak} weak samples were asked for; valid is {valid}")
        if self._config.serves:
            return self._sampled(encoded, strong, weak, rng, _wanted(start, start_mode, guidance))
        if start_mode != "noise":
            raise DecodingError(
                f"start mode is '{start_mode}'; valid is 'noise', as the server is not one of bid serve"
            )
        if guidance is not None:
            raise DecodingError(
                "guided samples were asked for; valid are others, as the server is not one of bid serve"
            )
        return self._chunks(encoded, strong), None

    def warm_up(self, samples: int) -> None:
        """Let the server warm up for a number of samples, and ask it once. Raises RemoteError as :meth:`sample`."""
        if self._config.serves:
            self._link.ask(lambda: [pack({EXTENSION: {"warm_up": samples}})], START_S)
        else:
            question = self._question(blank_observation(self._task))
            self._link.ask(lambda: [pack(question)], START_S)

    def _sampled(
        self,
        encoded: Observation,
        strong: int,
        weak: int,
        rng: np.random.Generator,
        how: Mapping[str, Any],
    ) -> tuple[Array, Array | None]:
        self._number += 1
        wanted = {"n": strong, "weak": weak, "seed": generator_words(rng), "number": self._number}
        answer = self._answer(encoded, {**wanted, **how})
        layout = self._task.horizon, self._task.action_dim
        try:
            said = own_words(answer)
            if said.get("number") != self._number:
                raise RemoteError("an answer to another question")
            if "missing" in said:
                raise RemoteError("word that it lacks images, which were all sent")
            self._sent.arrived()
            chunks = checked(said, "strong", (strong, *layout))
            others = checked(said, "weak", (weak, *layout)) if weak else None
            take_words(rng, said.get("seed"))
        except RemoteError as error:
            raise self._link.refuse(str(error)) from error
        return chunks, others

    def _answer(self, encoded: Observation, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Ask without the images that the server has; if it has lost them, with all."""

        def question() -> list[bytes]:
            if not self._sparing:
                return [pack({**encoded.values, EXTENSION: wanted})]
            content, kept = self._sent.spared(encoded.values)
            message = pack({**content, EXTENSION: {**wanted, "kept": kept}})
            return [deflated(message) if self._deflating else message]

        begin = time.monotonic()
        (answer,) = self._ask(question, self._limit_s)
        if "missing" in own_words(answer):
            self._sent.forget()
            (answer,) = self._ask(question, self._limit_s + begin - time.monotonic())
        return answer

    def _chunks(self, encoded: Observation, count: int) -> Array:
        """Return ``(count, H, D)`` of a server that gives one chunk ``(rows, D)`` an answer."""
        past = self._task.observation_steps - 1
        rows = self._task.horizon - past
        answers = self._ask(lambda: [pack(self._question(encoded))] * count, self._limit_s)
        try:
            chunks = [_first(answer, rows, self._task.action_dim) for answer in answers]
        except RemoteError as error:
            raise self._link.refuse(str(error)) from error
        return np.stack([np.concatenate([np.repeat(chunk[:1], past, axis=0), chunk]) for chunk in chunks])

    def _question(self, encoded: Observation) -> dict[str, Any]:
        """Return what openpi's servers get: the newest value of each feature, and the prompt."""
        keys = self._config.keys or {name: name for name in encoded.values}
        content: dict[str, Any] = {key: encoded.values[name][-1] for name, key in keys.items()}
        return content | ({"prompt": self._prompt} if self._prompt else {})

    def _instruct(self, text: str) -> str:
        """Ask with another prompt from now on; an empty one stands for the bundle's. Return the prompt."""
        self._prompt = text or self._config.prompt
        return self._prompt

    def _ask(self, questions: Callable[[], list[bytes]], limit_s: float) -> list[dict[str, Any]]:
        begin = time.monotonic()
        answers = self._link.ask(questions, limit_s)
        took_ms = 1000 * (time.monotonic() - begin)
        inside = sum(_inference_ms(answer) for answer in answers)
        times = {"server_ms": round(inside, 1), "network_ms": round(max(0.0, took_ms - inside), 1)}
        size = {"question_kb": round(self._link.asked_bytes / 1000, 1)}
        self._vitals = {**times, **size, "congestion_control": self._link.congestion or "unknown"}
        return answers

    def _greet(self, metadata: Mapping[str, Any]) -> None:
        said = own_words(metadata)
        self._sent.forget()  # another connection
        self._sparing, self._deflating = said.get("keeps_frames") is True, said.get("inflates") is True
        found = said.get("sha256")
        if self._config.serves and found != self._config.serves:
            what = f"that it serves bundle {str(found)[:12]}" if found else "no word of a bundle"
            raise self._link.refuse(
                f"{what}; valid is {self._config.serves[:12]}, or write the bundle anew: bid remote"
            )
        if self._config.serves:
            self.capabilities = self._told(said)

    def _told(self, said: Mapping[str, Any]) -> Capabilities:
        """Return what the policy there can do. Guiding it needs the word of now and of when the bundle was written."""
        rows, most = said.get("made_up_rows"), self._task.observation_steps - 1
        return replace(
            self.capabilities,
            starts=self._config.starts,
            gradients=self._config.gradients and said.get("has_gradients") is True,
            made_up_rows=min(max(rows, 0), most) if isinstance(rows, int) else 0,
        )


def _wanted(start: Array | None, start_mode: StartMode, guidance: Guidance | None) -> dict[str, Any]:
    """Return what a question says of how to sample."""
    said: dict[str, Any] = {"start_mode": start_mode}
    if start is not None:
        said["start"] = np.asarray(start, dtype=np.float64)
    if guidance is not None:
        target, weights = (np.asarray(item, dtype=np.float64) for item in (guidance.target, guidance.weights))
        said["guidance"] = {"target": target, "weights": weights, "clip": float(guidance.clip)}
    return said


def _first(answer: Mapping[str, Any], rows: int, size: int) -> Array:
    """Return the first rows ``(rows, D)`` of a chunk that may be longer. Raises RemoteError as :func:`checked`."""
    value = answer.get(ACTIONS)
    if isinstance(value, np.ndarray) and value.ndim == 2 and len(value) > rows:
        return checked({ACTIONS: value[:rows]}, ACTIONS, (rows, size))
    return checked(answer, ACTIONS, (rows, size))


def _inference_ms(answer: Mapping[str, Any]) -> float:
    timing = answer.get("server_timing")
    took = timing.get("infer_ms") if isinstance(timing, dict) else None
    return float(took) if isinstance(took, int | float) and math.isfinite(took) else 0.0
