"""The chain of a URDF as frames between joints that turn about z, for kinematics of many rows at once."""

import numpy as np
import pinocchio

from bid_ros.control import chain as serial
from bid_ros.core.rotation import Array
from bid_ros.robots.ros.urdf import UrdfChain


def serial_chain(chain: UrdfChain) -> serial.Chain:
    """Return the chain as frames between joints that turn about z."""
    model, data = chain.model, chain.model.createData()
    pinocchio.forwardKinematics(model, data, np.zeros(model.nq))  # only then data has the axes
    frames, before = [], np.eye(3)
    for place, joint in zip(model.jointPlacements.tolist()[1:], data.joints.tolist()[1:], strict=True):
        align = _z_to(joint.S.reshape(6)[3:])
        frames.append(serial.JointFrame(before.T @ place.translation, before.T @ place.rotation @ align))
        before = align
    end = model.frames[model.nframes - 1].placement
    frames.append(serial.JointFrame(before.T @ end.translation, before.T @ end.rotation))
    return serial.Chain(tuple(frames))


def _z_to(axis: Array) -> Array:
    """Return a rotation ``(3, 3)`` that turns z into an axis ``(3,)`` of length 1."""
    across = np.eye(3)[int(np.argmin(np.abs(axis)))]
    x = np.cross(across, axis)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(axis, x), axis], axis=1)
