"""Parameters of the episode node."""

from bid_ros.decoding.decoder_config import MOST_SAMPLES
from bid_ros.nodes.joints import ARM_CONFIG
from bid_ros.nodes.parameters import Parameter
from bid_ros.policy.decision_rate import FASTEST_HZ

PARAMETERS = (
    Parameter("task", "", "path of the task file"),
    Parameter("bundle", "", "folder of the policy bundle, for the record; empty in teleoperation"),
    Parameter("episodes", 3, "number of episodes", 1, 100000),
    Parameter("seed", 0, "seed of the first episode; episode i uses seed + i", 0, 2**31 - 1),
    Parameter("labels", [""], "label of each episode, repeated in turn: the decoder, or clean and diverse"),
    Parameter("moving", 0.03, "target speed in the twin, m/s; 0 = static", 0.0, 0.2),
    Parameter("twin", True, "the system runs in its twin; otherwise an operator prepares and judges"),
    ARM_CONFIG,
    Parameter("acting", "policy", "source that moves the arm in an episode: policy or teleop"),
    Parameter("out", "", "folder for run.json"),
    Parameter("decoder", "", "decoder, for the record"),
    Parameter("samples", 0, "N, for the record", 0, MOST_SAMPLES),
    Parameter("action_horizon", 1, "actions executed a decision, for the record", 1, 64),
    Parameter("decision_rate_hz", 0.0, "decisions a second, for the record; 0: the task's rate", 0.0, FASTEST_HZ),
    Parameter("nodes", [""], "nodes that are heard before the first episode, so that its record is complete"),
    Parameter("ready_timeout_s", 60.0, "time in s for every node to be ready", 1.0, 600.0),
    Parameter("robot_wait_s", 0.0, "further time in s for a robot that is switched on late", 0.0, 600.0),
    Parameter("timeout_s", 0.0, "s after which an episode ends; 0: as the task file says", 0.0, 86_400.0),
    Parameter("slow", 1.0, "factor of the speed of homing", 0.05, 1.0),
    Parameter("human", False, "a person starts each episode, says how it ended, and may take it back"),
    Parameter("prepares", True, "the arm goes to the start of each episode; otherwise it stays where it is"),
    Parameter("shadow", False, "the policy decides and is judged, but is not granted the arm"),
    Parameter("takeover", False, "a person may take over from the policy, by the device of the node teleop"),
    Parameter("awaited", "", "device of a person that each episode waits for; empty: a program drives"),
    Parameter("return_s", 0.5, "s for which the dead man's switch is open before the policy goes on", 0.0, 10.0),
    Parameter(
        "record_rest", 0.0, "s to stay in the episode after success (demonstrations: the operator retreats)", 0.0, 10.0
    ),
)
