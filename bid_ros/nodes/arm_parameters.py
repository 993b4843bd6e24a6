"""Parameters of the arm node."""

from bid_ros.nodes.parameters import Parameter

PARAMETERS = (
    Parameter("task", "", "path of the task file, whose limits hold"),
    Parameter("arm", "franka", "arm driver"),
    Parameter("arm_config", "", "path of the arm's configuration file"),
    Parameter("robot_ip", "", "address of the robot (or of its twin); required"),
    Parameter("twin", False, "the address is a twin: no real-time kernel needed, twin dynamics"),
    Parameter("connect_wait_s", 0.0, "time in s to go on trying; a twin, or a person, needs some", 0.0, 600.0),
    Parameter("required_wait_s", 0.0, "time in s to wait for the required nodes before connecting", 0.0, 120.0),
    Parameter("rate_hz", 100, "set-points streamed a second", 100, 1000),
    Parameter("lookahead_s", 0.0, "chunks are sampled this long ahead of now, for the lag of the arm", 0.0, 0.3),
    Parameter("publish_every", 2, "publish the state every n-th set-point", 1, 100),
    Parameter("standard_rate_hz", 10, "joint states, tool poses and transforms a second, at most", 1, 1000),
    Parameter("required", ["policy", "safety"], "nodes whose heartbeat the arm waits for and watches"),
    Parameter("heartbeat_deadline_s", 0.3, "longest silence of a required node; then a latched stop", 0.1, 2.0),
)
