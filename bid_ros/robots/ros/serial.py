"""The chain of a URDF as frames between joints that turn about z, for kinematics of many rows at once."""

import numpy as np

from bid_ros.control import chain as serial
from bid_ros.core.rotation import Array
from bid_ros.robots.ros.urdf import Chain


def serial_chain(chain: Chain) -> serial.Chain:
    """Return the chain as frames between joints that turn about z."""
    frames, before = [], np.eye(3)
    for placed in chain.placed:
        align = _z_to(placed.axis)
        frames.append(serial.Frame(before.T @ placed.position, before.T @ placed.rotation @ align))
        before = align
    end = chain.end
    frames.append(serial.Frame(before.T @ end.position, before.T @ end.rotation))
    return serial.Chain(tuple(frames))


def _z_to(axis: Array) -> Array:
    """Return a rotation ``(3, 3)`` that turns z into an axis ``(3,)`` of length 1."""
    across = np.eye(3)[int(np.argmin(np.abs(axis)))]
    x = np.cross(across, axis)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(axis, x), axis], axis=1)
