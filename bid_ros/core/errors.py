"""Errors that a user can cause. Each message is one clear sentence."""


class BidError(Exception):
    """Base of all errors of bad input. The message says what is wrong, where, and which values are valid."""


class TaskError(BidError):
    """A task file has an unknown field, lacks one, or has an impossible value."""


class ChunkError(BidError):
    """An action chunk has an impossible shape, time, source or value."""


class DecodingError(BidError):
    """A decoder's settings, or the samples given to it, are not valid."""


class BundleError(BidError):
    """A policy bundle is missing, damaged, or made for another task."""


class ObservationError(BidError):
    """Observations are missing, too old, or have another shape than the task says."""


class ArmError(BidError):
    """A robot does not answer, refuses a command, or reports a fault."""


class RobotAwayError(ArmError):
    """A robot does not answer, or a person has yet to switch it on and let it be used: waiting may help."""


class CameraError(BidError):
    """A camera cannot be opened, or delivers other images than asked for."""


class RecordingError(BidError):
    """A bag is missing, damaged, or lacks what a data set needs."""


class RemoteError(BidError):
    """A policy server does not answer in time, or its answer is no decision."""


class CalibrationError(BidError):
    """A board is not seen, or is not the described one; or images and poses do not tell where a camera is."""
