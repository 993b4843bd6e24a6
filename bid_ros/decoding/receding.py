"""The common loop of all decoders: sample every ``action_horizon`` steps, pick, optionally blend, remember."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.core.errors import DecodingError
from bid_ros.decoding.agreement import agreed_rows
from bid_ros.decoding.arrays import as_array
from bid_ros.decoding.bid import Selection, select
from bid_ros.decoding.decoder import Change, Choice, Decoder, DecodeRequest, Needs, Proposal, StartMode
from bid_ros.decoding.decoder_config import DecoderConfig
from bid_ros.decoding.memory import DecisionMemory, Overlap, committed_rows

Array = NDArray[np.float64]
Blend = Callable[[Array, Overlap, DecodeRequest, DecoderConfig], Array]
"""(picked (H, D), overlap, request, settings) -> chunk to execute (H, D)."""
Judge = Callable[[Array, DecoderConfig], int]
"""(samples (N, H, D), settings) -> the one to execute."""
Builder = Callable[[str, DecoderConfig], Decoder]
"""(name, settings) -> a decoder with an empty memory; the registry collects those in a module's ``DECODERS``."""


class RecedingDecoder:
    """A decoder made of a pick, a start of the denoising, and a blend.

    Args:
        name: name in the registry.
        config: settings. The action horizon is counted in time, not in calls.
        selects: it draws the samples of the settings and picks one with :func:`bid_ros.decoding.select`. Otherwise it
            draws a single strong one, which is picked as it is.
        start_mode: start of the denoising: ``noise``, or the previous decision in another mode. None: in the mode
            ``warm_start`` of the settings.
        blend: combines the picked sample with the previous decision. None: the sample is executed.
        delayed: the selection fixes the steps of the request's ``delay``, or of the settings' if it has none.
        judge: it draws the samples of the settings, of the strong policy only, and picks one with this function.
    """

    def __init__(
        self,
        name: str,
        config: DecoderConfig,
        selects: bool = False,
        start_mode: StartMode | None = "noise",
        blend: Blend | None = None,
        delayed: bool = False,
        judge: Judge | None = None,
    ) -> None:
        self.name, self._config, self._selects, self._blend, self._judge = name, config, selects, blend, judge
        self._start_mode: StartMode = start_mode or config.warm_start
        self._delayed = delayed
        self._memory = DecisionMemory(config.between)
        self._agreed = 0  # rows of the last decision that its samples agree on

    @property
    def needs(self) -> Needs:
        """A start, where sampling may start from the previous decision."""
        return Needs(starts=self._start_mode != "noise")

    def reset(self) -> None:
        """Forget the previous decision."""
        self._memory.reset()
        self._agreed = 0

    def executed(self, stamp_ns: int, changed: Change) -> None:
        """Remember what is executed of the decision of ``stamp_ns``, as :meth:`Decoder.executed`."""
        self._memory.change(stamp_ns, changed)

    def propose(self, request: DecodeRequest) -> Proposal:
        """Return what to sample: nothing until ``action_horizon`` steps of the last decision have passed.

        With ``agreement`` in the settings, nothing until the rows that its samples agree on have passed.

        Raises:
            DecodingError: the action horizon is longer than the executable rows of a prediction, or the remembered
                decision has another shape than the request.
        """
        horizon = self._config.action_horizon
        if horizon == "all":
            horizon = request.executable
        if horizon > request.executable:
            raise DecodingError(
                f"action_horizon is {horizon}; valid is at most {request.executable}, "
                f"the executable rows of a prediction"
            )
        least, overlap = max(horizon, self._agreed), self._overlap(request)
        # With a horizon of 1 every call is a decision, even one that rounds to the grid step of the last decision.
        if overlap is not None and least > 1 and overlap.steps < least:
            return Proposal(strong=0, weak=0)
        several = self._selects or self._judge is not None
        strong, weak = self._config.samples if several else 1, self._config.needed_weak_samples if self._selects else 0
        committed, delay = None, request.delay_or(self._config.delay)
        if overlap is not None and delay:
            committed = committed_rows(overlap.previous, request.observation_steps, delay)
        if overlap is None or self._start_mode == "noise":
            return Proposal(strong, weak, committed=committed)
        start = np.concatenate([overlap.previous, np.repeat(overlap.previous[-1:], overlap.executed, axis=0)])
        return Proposal(strong, weak, start, self._start_mode, committed=committed)

    def choose(self, request: DecodeRequest, strong: ArrayLike, weak: ArrayLike | None) -> Choice:
        """Pick, blend and remember. ``weak`` may be None. Raises DecodingError as :meth:`Decoder.choose`.

        Samples may be tensors of torch. What is decided is a NumPy array.
        """
        candidates = _checked("strong", as_array(strong), request)
        weaker = None if weak is None else as_array(weak)
        others = None if weaker is None or not len(weaker) else _checked("weak", weaker, request)
        overlap = self._overlap(request)
        index, selection = self._pick(candidates, others, overlap, request)
        actions = candidates[index].copy()
        if overlap is not None and self._blend is not None:
            actions, index = self._blend(actions, overlap, request, self._config), -1
        self._memory.remember(request.stamp_ns, request.dt_ns, actions)
        self._agreed = 0  # nobody agrees with a single candidate
        if self._config.agreement is not None and len(candidates) > 1:
            now, limit = request.observation_steps - 1, self._config.agreement
            # The next decision arrives later than it is asked for. Until then something must be left to execute.
            most = request.executable - 1 - request.delay_or(self._config.delay)
            self._agreed = min(most, agreed_rows(candidates[:, now:], actions[now:], limit, self._config.weights))
        return Choice(actions, index, selection, *(overlap[:2] if overlap is not None else (None, 0)))

    def _pick(
        self, strong: Array, weak: Array | None, overlap: Overlap | None, request: DecodeRequest
    ) -> tuple[int, Selection | None]:
        """Return the index of the sample, and the criteria if BID compared several."""
        first = request.made_up
        strong, weak = strong[:, first:], None if weak is None else weak[:, first:]
        if self._judge is not None:
            return self._judge(strong, self._config), None
        if not self._selects or strong.shape[0] == 1:
            return 0, None
        previous, executed = (None, 0) if overlap is None else overlap[:2]
        delay = request.delay_or(self._config.delay) if self._delayed else None
        config = self._config.bid(executed, request.observation_steps - first, delay, len(strong))
        selection = select(strong, weak, None if previous is None else previous[first:], config)
        return selection.index, selection

    def _overlap(self, request: DecodeRequest) -> Overlap | None:
        overlap = self._memory.previous_for(request.stamp_ns)
        if overlap is None:
            return None
        shape = (overlap.previous.shape[0] + overlap.executed, overlap.previous.shape[1])
        if shape != (request.horizon, request.action_dim):
            raise DecodingError(
                f"the previous decision has shape {shape}, the request {(request.horizon, request.action_dim)}; "
                f"reset the decoder between policies"
            )
        return overlap


def _checked(name: str, array: Array, request: DecodeRequest) -> Array:
    if array.ndim != 3 or not array.shape[0] or array.shape[1:] != (request.horizon, request.action_dim):
        raise DecodingError(
            f"{name} samples have shape {array.shape}; valid is (N, {request.horizon}, {request.action_dim})"
        )
    if not np.isfinite(array).all():
        raise DecodingError(f"{name} samples hold {np.count_nonzero(~np.isfinite(array))} values that are not finite")
    return array
