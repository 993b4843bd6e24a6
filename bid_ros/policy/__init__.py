"""From an observation to a decision: bundles, families of policies, runtimes, and the decision maker."""
