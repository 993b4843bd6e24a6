"""One decision: from an observation to the chunk to execute, through the decoder's two hooks."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bid_ros.control.slowing import Pace
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.errors import DecodingError
from bid_ros.core.observation import History, Observation
from bid_ros.core.rotation import Array
from bid_ros.core.task import Task
from bid_ros.decoding import (
    Choice,
    Decoder,
    DecoderConfig,
    DecodeRequest,
    LeadConfig,
    build_decoder,
    feature_weights,
)
from bid_ros.decoding.lead import check_lead
from bid_ros.policy.base import Bundle, Policy, policy_history
from bid_ros.policy.draft import Draft
from bid_ros.policy.publishable import publishable
from bid_ros.policy.registry import FAMILIES, most_samples
from bid_ros.policy.second_best import Screening, SecondBest

CLEARANCE: Final = 0.01  # m, from the workspace's edge: an arm overshoots a set-point by millimetres


@dataclass(frozen=True, eq=False)
class DecisionRecord:
    """A decision with all its candidates.

    Attributes:
        stamp_ns: time of the newest observation, which is the time of prediction row ``observation_steps - 1``.
        chunk: the published chunk: the rows from the current step on.
        strong: ``(N, H, D)`` candidates, task units, without those that were screened out.
        weak: ``(M, H, D)`` samples of the weak policy, None if none were drawn.
        choice: decision of the decoder, with its criteria.
        encode_ns, sample_ns, choose_ns: time spent on each part.
        screened: number of samples that were screened out.
    """

    stamp_ns: int
    chunk: ActionChunk
    strong: Array
    weak: Array | None
    choice: Choice
    encode_ns: int
    sample_ns: int
    choose_ns: int
    screened: int = 0


class DecisionMaker:
    """Joins policy and decoder. Live use, replay and evaluation decide through it.

    Args:
        policy: draws the samples.
        decoder: says how many to draw, and chooses.
        task: layout of the actions and gripper limits.
        seed: seed of the sampling noise. Several numbers are one seed.
        weak: False: do not use the weak policy.
        clock: steady time in ns. It only measures the duration of the parts.
        screen: says which of the samples ``(N, H, D)`` may be chosen, ``(N,)``. If none may, all are candidates: the
            safety node judges. None: all may.
        free, rest: as :class:`bid_ros.policy.second_best.SecondBest`.
        aware: told each observation before it is decided on.

    Attributes:
        limit: largest number of samples to draw of each policy, whatever the decoder asks for. None: no limit.
        delay: steps that will have passed when a decision arrives, for :class:`bid_ros.decoding.DecodeRequest`. None:
            not measured. One that leaves nothing to decide counts as the longest that leaves a step.
        stream: number of the noise's stream, see :meth:`reset`.

    Raises:
        DecodingError: as :func:`check_decoder`.
    """

    def __init__(
        self,
        policy: Policy,
        decoder: Decoder,
        task: Task,
        seed: int | tuple[int, ...] = 0,
        weak: bool = True,
        clock: Callable[[], int] = time.monotonic_ns,
        screen: Screening | None = None,
        free: Callable[[Array], bool] | None = None,
        rest: Screening | None = None,
        aware: Callable[[Observation], None] = lambda observation: None,
    ) -> None:
        check_decoder(decoder, policy)
        self._policy, self._decoder, self._task, self._clock = policy, decoder, task, clock
        self._weak, self._screen, self._second_best = weak and policy.has_weak, screen, SecondBest(free, rest)
        self._aware = aware
        self._sequence = 0
        self._last_ns = 0
        self._paces: dict[int, Pace] = {}
        self.limit: int | None = None
        self.delay: int | None = None
        self._seed, self.stream = _numbers(seed), 0
        self._rng = np.random.default_rng((*self._seed, 0))

    def reset(self, seed: int | None = None, stream: int | None = None) -> None:
        """Forget the previous decision, as at the start of an episode.

        The noise starts anew, so it does not depend on the number of decisions of the last episode. With ``seed`` it is
        the noise of a new object with that seed. Without, it is another stream of the same seed, so that the episodes
        of a run do not share their noise: the next one, or ``stream``. The sequence numbers of the chunks continue.
        """
        following = self.stream + 1 if seed is None else 0
        self.stream = following if stream is None else stream
        self._seed = self._seed if seed is None else _numbers(seed)
        self._rng = np.random.default_rng((*self._seed, self.stream))
        self._decoder.reset()

    def forwarded(self, chunk: ActionChunk) -> None:
        """Take what safety forwards of a decision. The next decision coheres with it where it was slowed down.

        Any thread may call it. It counts if it comes before the next decision begins.
        """
        task = self._task
        pace = Pace.between(task.chunk_rows, chunk.horizon, chunk.scale)
        if pace is not None:
            self._paces[chunk.stamp_ns] = pace

    def use(self, decoder: Decoder) -> None:
        """Decide with another decoder from now on. The sequence numbers of the chunks continue.

        Raises:
            DecodingError: as :func:`check_decoder`.
        """
        check_decoder(decoder, self._policy)
        self._decoder = decoder

    @property
    def history(self) -> History:
        """The observed steps that the policy wants."""
        return policy_history(self._policy, self._task)

    def decide(self, observation: Observation) -> DecisionRecord | None:
        """Decide on ``observation``. None: the decoder keeps executing its previous decision.

        Raises:
            ObservationError: the observation does not fit the task.
            DecodingError: the candidates cannot be decoded.
        """
        draft = self.begin(observation)
        if draft is None:
            return None
        begin = self._clock()
        strong, weak = draft.sample(self._policy)
        return self.finish(draft, strong, weak, self._clock() - begin)

    def begin(self, observation: Observation) -> Draft | None:
        """Encode ``observation`` and return what to sample: the first half of :meth:`decide`. Raises as it does."""
        task = self._task
        self._aware(observation)
        self._heed(observation.stamp_ns)
        layout = task.dt_ns, task.observation_steps, task.horizon, task.action_dim
        most = task.horizon - task.observation_steps  # a longer delay leaves nothing to decide
        delay = None if self.delay is None else min(self.delay, most)
        can = self._policy.capabilities
        request = DecodeRequest(observation.stamp_ns, *layout, delay=delay, made_up=can.made_up_rows)
        proposal = self._decoder.propose(request)
        if proposal.strong == 0:
            return None
        limit = proposal.strong if self.limit is None else self.limit
        strong, weak = min(proposal.strong, limit), min(proposal.weak, limit) if self._weak else 0
        begin = self._clock()
        known: dict[str, Any] = {"committed": proposal.committed} if can.simulated_delay else {}
        encoded = self._policy.encode(observation, weak=weak > 0, **known)
        took_ns = self._clock() - begin
        how = proposal.start, proposal.start_mode, proposal.guidance
        return Draft(request, encoded, strong, weak, self._rng, *how, encode_ns=took_ns)

    def _heed(self, now_ns: int) -> None:
        """Remember the last decision as it is executed."""
        pace, task = self._paces.pop(self._last_ns, None), self._task
        for stamp_ns in [stamp_ns for stamp_ns in list(self._paces) if stamp_ns < now_ns]:
            del self._paces[stamp_ns]
        if pace is not None:
            whole = pace.after(task.observation_steps - 1)
            self._decoder.executed(self._last_ns, lambda rows: whole.slowed(rows, task, len(rows)))

    def finish(self, draft: Draft, strong: Array, weak: Array | None, sample_ns: int = 0) -> DecisionRecord:
        """Choose among the samples of a draft: the second half of :meth:`decide`. Raises as it does.

        Args:
            draft: result of :meth:`begin`.
            strong, weak: ``(N, H, D)`` and ``(M, H, D)`` or None, task units.
            sample_ns: duration of the sampling, for the record.
        """
        begin, drawn = self._clock(), len(strong)
        if self._screen is not None:
            passed = self._screen(strong)
            strong = strong[passed] if passed.any() else strong
            weak = None if weak is None else weak[: len(strong)]  # as many as decoders expect
        found = self._second_best.choose(self._decoder, draft.request, strong, weak)
        self._decoder, strong, weak, choice = found.decoder, found.strong, found.weak, found.choice
        choose_ns = self._clock() - begin
        stamp_ns = self._last_ns = draft.request.stamp_ns
        chunk = publishable(choice.actions, stamp_ns, self._task, self._sequence)
        self._sequence += 1
        times = draft.encode_ns, sample_ns, choose_ns
        return DecisionRecord(stamp_ns, chunk, strong, weak, choice, *times, screened=drawn - len(strong))


def check_decoder(decoder: Decoder, policy: Policy) -> None:
    """Raise DecodingError if a decoder needs gradients, or starts from a chunk, and a policy cannot do that."""
    if decoder.needs.starts and not policy.capabilities.starts:
        raise DecodingError(
            f"decoder '{decoder.name}' starts from its last decision, which this policy cannot: its family samples "
            "only from noise, or it rolls the state forward, or its server is not bid serve, or its bundle's space "
            "cannot be inverted exactly; valid is a decoder that starts from noise"
        )
    if decoder.needs.gradients and not policy.capabilities.gradients:
        raise DecodingError(
            f"decoder '{decoder.name}' needs the network's gradient, which runtime '{policy.runtime}' has not; "
            "valid is runtime torch (behind bid serve too; then call bid remote again), with a diffusion policy that "
            "does not roll the state forward, is not sampled by rk4, and whose space, if any, is inverted row by row"
        )


def _numbers(seed: int | tuple[int, ...]) -> tuple[int, ...]:
    return seed if isinstance(seed, tuple) else (seed,)


def bundle_decoder(name: str, bundle: Bundle, task: Task, samples: int, action_horizon: int) -> Decoder:
    """Return a decoder for a bundle: with its action weights, and with weak samples if it has a weak policy.

    Args:
        name: of the decoder; its settings may follow, as in ``bid:variant=paper``.
        bundle: a checked bundle.
        task: the task it was checked against.
        samples: N, strong samples a decision, and as many weak ones; fewer where the bundle has no more.
        action_horizon: actions executed before the next decision; 1 is closed loop.

    Raises:
        DecodingError: there is no such decoder, a value is outside its range, the decoder starts or guides a denoising
            that the bundle's family does not have, it chooses among samples and the policy has one chunk for an
            observation, or it leads a position and the task commands none.
    """
    rows = task.chunk_rows
    if not 1 <= action_horizon <= rows:
        raise DecodingError(f"action_horizon is {action_horizon}; valid is 1 to {rows}, the actions of a chunk")
    most = most_samples(bundle)
    config = DecoderConfig(
        # Of one chunk alone it is asked below whether the decoder would choose among several.
        samples=samples if most is None or most == 1 else min(samples, most),
        weak_samples=0 if bundle.weak is None else samples,
        action_horizon=action_horizon,
        weights=feature_weights(
            bundle.action_spread,
            [feature.size for feature in task.action],
            [bundle.action_weights.get(feature.name, 1.0) for feature in task.action],
        ),
        lead=_lead(task),
    )
    decoder = build_decoder(name, config)
    check_lead(decoder, task)
    if (decoder.needs.starts or decoder.needs.gradients) and not FAMILIES.find(bundle.family).denoises:
        raise DecodingError(
            f"decoder '{decoder.name}' changes the denoising of samples, but the family {bundle.family} denoises "
            "nothing; valid is one that does not, such as vanilla, ema or bid"
        )
    _check_candidates(decoder, bundle, task)
    return decoder


def _check_candidates(decoder: Decoder, bundle: Bundle, task: Task) -> None:
    """Raise DecodingError if a decoder chooses among samples and the policy has one chunk for an observation."""
    first = DecodeRequest(0, task.dt_ns, task.observation_steps, task.horizon, task.action_dim)
    if most_samples(bundle) == 1 and decoder.propose(first).strong > 1:
        raise DecodingError(
            f"decoder '{decoder.name}' chooses among samples, but the policy of the family {bundle.family} is "
            "deterministic: it has one chunk for an observation, so N is 1; valid is a decoder that takes one, such as "
            "vanilla or ema, or a bundle of several checkpoints (bid policy import --also)"
        )


def _lead(task: Task) -> LeadConfig:
    """Return the lead along x and y of the commanded position, :data:`CLEARANCE` inside the workspace."""
    columns, limits = task.columns("position"), task.limits
    if columns is None:
        return LeadConfig()
    first = columns.start
    low, high = (np.array(bound[:2]) for bound in (limits.workspace_min, limits.workspace_max))
    inside = np.minimum(CLEARANCE, (high - low) / 2)
    return LeadConfig(columns=(first, first + 1), low=tuple(low + inside), high=tuple(high - inside))
