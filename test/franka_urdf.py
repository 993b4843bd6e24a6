"""The chain of a Franka's joints as a URDF, each of which turns on and on, and a posture of it."""

import math

import numpy as np

from bid_ros.robots.franka.kinematics import TABLE

FRANKA_HOME = np.array([0.0, -math.pi / 4, 0.0, -3 * math.pi / 4, 0.0, math.pi / 2, math.pi / 4])


def franka_urdf():
    """Craig's convention is the URDF's: a joint's origin is turned about x, then moved along the turned z."""
    links, joints = '<link name="link0"/>', ""
    for number, (a, d, alpha) in enumerate(TABLE, 1):
        place = f"{a} {-math.sin(alpha) * d} {math.cos(alpha) * d}"
        links += f'<link name="link{number}"/>'
        joints += f"""<joint name="joint{number}" type="continuous"><axis xyz="0 0 1"/>
          <limit effort="1" velocity="2"/><parent link="link{number - 1}"/><child link="link{number}"/>
          <origin xyz="{place}" rpy="{alpha} 0 0"/></joint>"""
    return f'<robot name="franka">{links}{joints}</robot>'
