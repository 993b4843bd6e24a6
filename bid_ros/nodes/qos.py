"""Quality of service per kind of topic, chosen once.

| profile | topics | why |
|---|---|---|
| COMMAND | chunks, safety state | reliable, depth 1: only the newest chunk matters and it must arrive |
| STATE | joint states, tool pose, arm status, heartbeats | reliable, depth 10: small; a recorder must not lose them |
| IMAGE | camera images, twin scene | reliable, depth 2: one host or a wired network; a slow reader drops old frames |
| DECISION | decisions | reliable, depth 10: recorded for replay |
| EVENT | episode events | reliable, transient local, depth 20: a late node still learns the phase |
"""

from __future__ import annotations

from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy

COMMAND = QoSProfile(depth=1, reliability=QoSReliabilityPolicy.RELIABLE)
STATE = QoSProfile(depth=10, reliability=QoSReliabilityPolicy.RELIABLE)
IMAGE = QoSProfile(depth=2, reliability=QoSReliabilityPolicy.RELIABLE)
DECISION = QoSProfile(depth=10, reliability=QoSReliabilityPolicy.RELIABLE)
EVENT = QoSProfile(depth=20, reliability=QoSReliabilityPolicy.RELIABLE, durability=QoSDurabilityPolicy.TRANSIENT_LOCAL)
DRIVER_IMAGE = QoSProfile(depth=2, reliability=QoSReliabilityPolicy.BEST_EFFORT)
