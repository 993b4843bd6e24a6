"""Action chunks from codes and offsets. NumPy only.

Source: Lee et al., "Behavior Generation with Latent Actions", ICML 2024, Section 3.3, Eqs. 4 to 6. A chunk is what a
pair of codes stands for, plus an offset that the network predicts for each of the two codes.
"""

from typing import Annotated, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bid_ros.core.errors import BundleError
from bid_ros.core.settings import settings

MOST_CODES: Final = 256
LAYERS: Final = 2
Temperature = Annotated[float, Field(ge=0.01, le=100)]
Array = NDArray[np.float64]


@settings(error=BundleError)
class VqBetSettings:
    """How the codes are drawn.

    Attributes:
        codes: C, codes of each of the two layers.
        temperature: the logits are divided by it. Below 1, likely codes are drawn more often than they were
            demonstrated.

    Raises:
        BundleError: a value is outside its range.
    """

    codes: Annotated[int, Field(ge=2, le=MOST_CODES)]
    temperature: Temperature


class CodeForecast(NamedTuple):
    """What the network predicts from an observation.

    Attributes:
        primary: ``(C,)`` logits of the first code.
        secondary: ``(C, C)`` logits of the second code, a row for each first code.
        offsets: ``(2, C, R, D)`` of each code, normalised.
    """

    primary: NDArray[np.float32]
    secondary: NDArray[np.float32]
    offsets: NDArray[np.float32]


def forecast_size(codes: int, rows: int, action_dim: int) -> int:
    """Return how many numbers a :class:`CodeForecast` holds."""
    return codes + codes * codes + LAYERS * codes * rows * action_dim


def split_forecast(values: NDArray[np.float32], codes: int, rows: int, action_dim: int) -> CodeForecast:
    """Return the parts of what the graph ``encoder`` computes, ``(1, C + C C + 2 C R D)``."""
    primary, secondary, offsets = np.split(values[0], [codes, codes + codes * codes])
    return CodeForecast(primary, secondary.reshape(codes, codes), offsets.reshape(LAYERS, codes, rows, action_dim))


def draw_codes(forecast: CodeForecast, temperature: float, uniforms: Array) -> NDArray[np.int64]:
    """Draw N pairs of codes, the second one given the first.

    Args:
        forecast: logits.
        temperature: of both codes.
        uniforms: ``(N, 2)`` numbers in [0, 1). A code is the first one whose cumulated probability reaches its number.

    Returns:
        ``(N, 2)``, the first and the second code.
    """
    last = len(forecast.primary) - 1
    first = np.searchsorted(_cumulated(forecast.primary, temperature), uniforms[:, 0])
    first = np.minimum(first, last)
    rows = _cumulated(forecast.secondary, temperature)[first]
    second = np.minimum((rows < uniforms[:, 1:]).sum(axis=1), last)
    return np.stack([first, second], axis=1).astype(np.int64)


def chunks_of(codes: NDArray[np.int64], table: NDArray[np.float32], forecast: CodeForecast) -> NDArray[np.float32]:
    """Return normalised chunks ``(N, R, D)``: what the codes stand for, and the offsets of both.

    Args:
        codes: ``(N, 2)``.
        table: ``(C, C, R, D)``, what each pair of codes stands for.
        forecast: offsets.
    """
    first, second = codes[:, 0], codes[:, 1]
    offsets = forecast.offsets[0, first] + forecast.offsets[1, second]
    chunks: NDArray[np.float32] = table[first, second] + offsets
    return chunks


def _cumulated(logits: NDArray[np.float32], temperature: float) -> Array:
    scaled = logits.astype(np.float64) / temperature
    shares = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    cumulated: Array = np.cumsum(shares / shares.sum(axis=-1, keepdims=True), axis=-1)
    return cumulated
