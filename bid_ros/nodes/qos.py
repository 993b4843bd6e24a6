"""Quality of service per kind of topic, chosen once.

| profile | topics | why |
|---|---|---|
| COMMAND | chunks of policy, teleop, episode, safety | reliable, depth 1: only the newest matters, and must arrive |
| STATE | joints, tool pose, arm and safety state, heartbeats, diagnostics, truth, markers | reliable, depth 10: small |
| IMAGE | camera images, overlay image, twin scene | reliable, depth 2: a slow reader drops old frames |
| DRIVER_IMAGE | image topics of camera drivers | best effort, depth 2: fits every driver's publisher |
| DECISION | decisions | reliable, depth 10: recorded for replay |
| EVENT | episode events | reliable, transient local, depth 20: a late node still learns the phase |

The recorder subscribes to all of them with a depth of 20: it may fall behind for a moment, and nothing waits for it.
"""

from __future__ import annotations

from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy

COMMAND = QoSProfile(depth=1, reliability=QoSReliabilityPolicy.RELIABLE)
STATE = QoSProfile(depth=10, reliability=QoSReliabilityPolicy.RELIABLE)
IMAGE = QoSProfile(depth=2, reliability=QoSReliabilityPolicy.RELIABLE)
DECISION = QoSProfile(depth=10, reliability=QoSReliabilityPolicy.RELIABLE)
EVENT = QoSProfile(depth=20, reliability=QoSReliabilityPolicy.RELIABLE, durability=QoSDurabilityPolicy.TRANSIENT_LOCAL)
DRIVER_IMAGE = QoSProfile(depth=2, reliability=QoSReliabilityPolicy.BEST_EFFORT)
