"""Parameters of the safety node."""

from bid_ros.nodes.joints import ARM_CONFIG, TWIN
from bid_ros.nodes.parameters import Parameter

PARAMETERS = (
    Parameter("task", "", "path of the task file, whose limits are enforced"),
    Parameter("required", ["camera", "policy", "arm"], "nodes whose heartbeat is required"),
    Parameter("heartbeat_deadline_s", 0.3, "longest silence of a required node before the stop latches", 0.1, 2.0),
    Parameter("settle_s", 1.0, "time in s without a gap before the watchdog is armed", 0.0, 60.0),
    Parameter("late_limit", 5, "consecutive late chunks before the stop latches", 1, 100),
    Parameter("slow", 1.0, "factor of the speed of the policy's chunks, whether they break a limit or not", 0.05, 1.0),
    Parameter("shadow", False, "judge the policy's chunks and tell what they would do, but never forward one"),
    Parameter("partners", [""], "namespaces of the other arms of the same policy: a stop of one stops all"),
    Parameter("max_pose_age_s", 0.2, "a measured tool pose older than this is not used to judge jumps", 0.01, 2.0),
    ARM_CONFIG,
    TWIN,
)
