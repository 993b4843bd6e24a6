"""Parameters of the policy node."""

from bid_ros.decoding.decoder_config import MOST_SAMPLES
from bid_ros.nodes.joints import ARM_CONFIG, TWIN
from bid_ros.nodes.parameters import Parameter
from bid_ros.policy.budget import BUDGET_MS
from bid_ros.policy.decision_rate import FASTEST_HZ

PARAMETERS = (
    Parameter("task", "", "path of the task file"),
    Parameter("bundle", "", "folder of the policy bundle"),
    Parameter("signed_by", "", "path of the public key that must have signed the bundle; empty: none"),
    Parameter("bundle_task", "", "path of the task file of a bundle that predicts poses where joints are commanded"),
    Parameter("decoder", "bid", "the decoder, as in bid or bid:variant=paper; names: docs/reference/decoders.md"),
    Parameter("instruction", "", "text of the task, for a policy that takes one; empty: that of its bundle"),
    Parameter(
        "samples",
        16,
        "N, strong samples a decision; as many weak ones if the bundle has a weak policy",
        1,
        MOST_SAMPLES,
    ),
    Parameter("action_horizon", 1, "actions executed before the next decision; 1 = closed loop", 1, 64),
    Parameter(
        "decision_rate_hz", 0.0, "decisions a second, a multiple of the task's rate; 0: its rate", 0.0, FASTEST_HZ
    ),
    Parameter("runtime", "auto", "network runtime; names: docs/reference/runtimes.md"),
    Parameter(
        "fallback_runtime", "", "starts instead if runtime cannot be used; empty: the node then refuses to start"
    ),
    Parameter("engines", "", "folder of compiled engines; empty: ~/.cache/bid_ros/engines"),
    ARM_CONFIG,
    TWIN,
    Parameter("threads", 1, "inference threads", 1, 64),
    Parameter(
        "budget_ms",
        BUDGET_MS,
        "longest time of a decision, and at most a period if a step of the task has several: N shrinks to fit; "
        "0 = N stays as it is",
        0.0,
        1000.0,
    ),
    Parameter("seed", 0, "seed of the sampling noise", 0, 2**31 - 1),
    Parameter(
        "frame_wait_ms",
        65.0,
        "a decision waits this long for frames; a little over half a step of the task; less if a step has more "
        "decisions, in proportion",
        0.0,
        1000.0,
    ),
    Parameter("decision_phase_ms", 5.0, "decisions start this long after each multiple of the period", 0.0, 1000.0),
    Parameter(
        "max_late_ms",
        40.0,
        "a decision that would start later than this after its time, or a period later, is skipped",
        0.0,
        1000.0,
    ),
)
