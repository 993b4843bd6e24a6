"""Plays the policy in a process of its own, which a test may freeze or kill: its tool goes round a circle for ever.

Arguments: the path of the task, and the speed of the tool in m/s. The circle lies at the height of the first tool pose
that is heard. Where the tool was held up, it goes on from where the tool is.
"""

import math
import sys
import time

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped
from qos import COMMAND, STATE
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import Heartbeat
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.poses import pose_arrays
from bid_ros.core.rotation import matrix_from_quaternion, matrix_to_6d
from bid_ros.core.task import load_task
from bid_ros.nodes.ros_messages import chunk_to_message

CENTER = np.array([0.42, -0.05])  # m, base frame; the twin's tool begins on the circle
RADIUS = 0.06  # m
HELD_UP = 0.04  # m between the tool and where it should be
STEPS = 15
OPEN = 0.08  # m


class Circling(Node):
    """Heartbeats at 20 Hz, chunks at the task's rate."""

    def __init__(self, task, speed):
        super().__init__("policy")
        self.task, self.rate = load_task(task), float(speed) / RADIUS
        self.tool = self.first = None
        self.phase, self.since, self.sequence = 0.0, 0, 0
        self.chunks = self.create_publisher(ChunkMessage, "/policy/chunk", COMMAND)
        self.beats = self.create_publisher(Heartbeat, "/heartbeat", STATE)
        self.create_subscription(PoseStamped, "/arm/tool_pose", self.on_pose, STATE)
        self.create_timer(0.05, lambda: self.beats.publish(Heartbeat(node="policy")))
        self.create_timer(self.task.dt_ns / NANOSECONDS, self.decide)

    def on_pose(self, message):
        self.tool = pose_arrays(message.pose)
        if self.first is None:
            self.first = self.tool

    def places(self, times):
        phases = self.phase + self.rate * (times - self.since) / NANOSECONDS
        return CENTER + RADIUS * np.stack([np.cos(phases), np.sin(phases)], axis=1)

    def decide(self):
        if self.first is None:
            return
        now = time.time_ns()
        here = self.tool[0][:2]
        if np.linalg.norm(self.places(np.array([now]))[0] - here) > HELD_UP:
            away = here - CENTER
            self.phase, self.since = math.atan2(away[1], away[0]), now
        position, quaternion = self.first
        rows = np.tile([*position, *matrix_to_6d(matrix_from_quaternion(quaternion)), OPEN], (STEPS, 1))
        rows[:, :2] = self.places(now + self.task.dt_ns * np.arange(STEPS))
        chunk = ActionChunk(now, self.task.dt_ns, rows, source="policy", sequence=self.sequence)
        self.sequence += 1
        self.chunks.publish(chunk_to_message(chunk, self.task, ""))


# A signal ends it at once: rclpy's own handler would end the context under the executor.
rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
rclpy.spin(Circling(*sys.argv[1:]))
