"""Spaces: what a policy's network sees and predicts, and the way from there to the task's terms and back.

A bundle without a section ``space`` has a network that sees the task's features and predicts the task's action. With
one, :func:`bid_ros.policy.registry.load_policy` puts a :class:`bid_ros.policy.spaces.policy.SpacedPolicy` around the
family's policy: the family meets the network's own features and columns, decoders and nodes meet the task's.
"""
