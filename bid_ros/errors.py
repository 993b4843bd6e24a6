"""The errors a user can cause, each of which reads as one clear sentence."""

from __future__ import annotations


class BidError(Exception):
    """Base of every error that is the input's fault: what is wrong, where, and which values are valid."""


class TaskError(BidError):
    """A task file with an unknown field, a missing one or an impossible value."""


class ChunkError(BidError):
    """An action chunk that cannot be what it claims: shape, time or values."""


class DecodingError(BidError):
    """A decoder configuration or a set of candidates that cannot be decoded."""


class BundleError(BidError):
    """A policy bundle that is missing, damaged or made for another task."""


class ObservationError(BidError):
    """Observations that are missing, stale or of another shape than the task says."""


class ArmError(BidError):
    """A robot that does not answer, refuses a command or reports a fault."""


class CameraError(BidError):
    """A camera that cannot be opened or delivers something else than asked for."""


class RecordingError(BidError):
    """A bag that is missing, damaged or lacks what a data set needs."""
