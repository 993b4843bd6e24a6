"""One decision: an observation in, the chunk to execute out, through the decoder's two hooks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bid_ros.chunk import ActionChunk
from bid_ros.decoding import Choice, Decoder, DecoderConfig, DecodeRequest, build_decoder, feature_weights
from bid_ros.observation import Observation
from bid_ros.policy.bundle import Bundle
from bid_ros.policy.policy import Policy
from bid_ros.rotation import matrix_from_6d, matrix_to_6d
from bid_ros.task import Task

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DecisionRecord:
    """A decision with everything that was considered.

    Attributes:
        stamp_ns: time of the newest observation, which is the instant of prediction row ``observation_steps - 1``.
        chunk: what is published: the rows from the current step on.
        strong: ``(N, H, D)`` candidates, task units.
        weak: ``(M, H, D)`` samples of the weak policy, None if none were drawn.
        choice: what the decoder decided and why.
        encode_ns, sample_ns, choose_ns: time spent on each part.
    """

    stamp_ns: int
    chunk: ActionChunk
    strong: Array
    weak: Array | None
    choice: Choice
    encode_ns: int
    sample_ns: int
    choose_ns: int


class DecisionMaker:
    """Policy and decoder together; live, replay and evaluation decide through it.

    Args:
        policy: draws the samples.
        decoder: says how many, and chooses.
        task: layout of the actions and gripper limits.
        seed: of the sampling noise.
        weak: False withholds the weak policy from the decoder.
        clock: steady time in ns, only to measure how long the parts take.
    """

    def __init__(
        self,
        policy: Policy,
        decoder: Decoder,
        task: Task,
        seed: int = 0,
        weak: bool = True,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._policy, self._decoder, self._task, self._clock = policy, decoder, task, clock
        self._weak = weak and policy.has_weak
        self._sequence = 0
        self._seed, self._episode = seed, 0
        self._rng = np.random.default_rng((seed, 0))

    def reset(self, seed: int | None = None) -> None:
        """Forget the previous decision, as at the start of an episode.

        The noise starts anew, so nothing depends on how many decisions the last episode had. With ``seed`` it is the
        noise of a new object with that seed; without, another stream of the same seed, so that the episodes of one
        run do not share their noise. The chunks' sequence numbers go on.
        """
        self._episode = self._episode + 1 if seed is None else 0
        self._seed = self._seed if seed is None else seed
        self._rng = np.random.default_rng((self._seed, self._episode))
        self._decoder.reset()

    def decide(self, observation: Observation) -> DecisionRecord | None:
        """Decide on ``observation``; None if the decoder goes on executing its previous decision.

        Raises:
            ObservationError: if the observation is not what the task says.
            DecodingError: if the candidates cannot be decoded.
        """
        task = self._task
        request = DecodeRequest(observation.stamp_ns, task.dt_ns, task.observation_steps, task.horizon, task.action_dim)
        proposal = self._decoder.propose(request)
        if proposal.strong == 0:
            return None
        weak_count = proposal.weak if self._weak else 0
        begin = self._clock()
        encoded = self._policy.encode(observation, weak=weak_count > 0)
        encoded_at = self._clock()
        strong, weak = self._policy.sample(
            encoded, proposal.strong, weak_count, self._rng, proposal.start, proposal.start_mode
        )
        sampled_at = self._clock()
        choice = self._decoder.choose(request, strong, weak)
        chosen_at = self._clock()
        chunk = publishable(choice.actions, observation.stamp_ns, task, self._sequence)
        self._sequence += 1
        return DecisionRecord(
            stamp_ns=observation.stamp_ns,
            chunk=chunk,
            strong=strong,
            weak=weak,
            choice=choice,
            encode_ns=encoded_at - begin,
            sample_ns=sampled_at - encoded_at,
            choose_ns=chosen_at - sampled_at,
        )


def bundle_decoder(name: str, bundle: Bundle, task: Task, samples: int, action_horizon: int) -> Decoder:
    """Return the decoder that suits a bundle: its action weights, and weak samples if it has a weak policy.

    Args:
        name: registry name.
        bundle: a checked bundle.
        task: the task it was checked against.
        samples: N, strong samples a decision; as many weak ones.
        action_horizon: actions executed before the next decision; 1 is closed loop.

    Raises:
        DecodingError: if there is no such decoder or a value is outside its range.
    """
    config = DecoderConfig(
        samples=samples,
        weak_samples=0 if bundle.weak is None else samples,
        action_horizon=action_horizon,
        weights=feature_weights(bundle.action_spread, [feature.size for feature in task.action]),
    )
    return build_decoder(name, config)


def publishable(actions: Array, stamp_ns: int, task: Task, sequence: int) -> ActionChunk:
    """Return the executable part of a prediction ``(H, D)`` as a chunk of ``H - (To - 1)`` rows.

    Row ``To - 1`` belongs to ``stamp_ns``. Rotations are made orthonormal and gripper widths clipped to the task's
    limits, since a network's output is near them but not on them. Positions are left as they are: one outside the
    workspace is for the safety node to refuse.
    """
    rows = np.array(actions[task.observation_steps - 1 :], dtype=np.float64)
    start = 0
    for feature in task.action:
        columns = slice(start, start + feature.size)
        if feature.kind == "rotation_6d":
            rows[:, columns] = matrix_to_6d(matrix_from_6d(rows[:, columns]))
        elif feature.kind == "gripper":
            rows[:, columns] = np.clip(rows[:, columns], task.limits.gripper_min, task.limits.gripper_max)
        start += feature.size
    return ActionChunk(stamp_ns, task.dt_ns, rows, frame_id=task.base_frame, sequence=sequence)
