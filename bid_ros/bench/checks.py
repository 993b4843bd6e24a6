"""What the environments of the benches check alike: the numbers that they are given, and their simulator."""

import warnings
from contextlib import redirect_stderr
from importlib.util import find_spec
from io import StringIO
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.core.errors import BidError


def finite(bench: str, name: str, value: ArrayLike, size: int) -> NDArray[np.float64]:
    """Return a value that an environment is given as ``(size,)`` float64.

    Args:
        bench: who says so in the sentence of an error.
        name: of the value.
        value: what was given.
        size: how many numbers it has.

    Raises:
        BidError: it has another shape, or a number is not finite.
    """
    array: NDArray[np.float64] = np.asarray(value, dtype=np.float64)
    if array.shape != (size,) or not np.isfinite(array).all():
        raise BidError(f"{bench}: {name} is {array.tolist()}; valid are {size} finite numbers")
    return array


def check_simulator(bench: str, module: str, needs: str) -> None:
    """Raise BidError if the simulator of a bench is not installed, whose MuJoCo would take the place of the twins'."""
    if find_spec(module) is None:
        raise BidError(f"the bench {bench} needs {needs} in an environment of its own; make it with: make benchmarks")


def robotics_environment(bench: str, name: str) -> Any:
    """Return an environment of gymnasium-robotics without its wrappers; imported here, so that only a bench needs it.

    Args:
        bench: who needs it.
        name: of the environment.

    Raises:
        BidError: gymnasium-robotics is not installed.
    """
    check_simulator(bench, "gymnasium_robotics", name)
    with redirect_stderr(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the door it says that its reward changed within a version
        import gymnasium
        import gymnasium_robotics

        gymnasium.register_envs(gymnasium_robotics)
        return gymnasium.make(name).unwrapped
