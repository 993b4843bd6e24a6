"""Observations from messages: live, in replay and in training."""
