"""What franky raises, as one sentence with what to check."""

import franky

from bid_ros.core.errors import ArmError, RobotAwayError

# franky raises RuntimeError("Net Exception") if libfranka passes on an error of its socket library.
FRANKY_ERRORS: tuple[type[Exception], ...] = (
    franky.Exception,
    franky.InvalidMotionTypeException,
    RuntimeError,
    ValueError,
)


def sentence(address: str, error: Exception) -> str:
    """Return one sentence with the robot, the message of libfranka, and what to check."""
    text = " ".join(str(error).split()).removeprefix("libfranka: ").rstrip(".")
    return f"robot at {address}: {text}: {_advice(error, text)}"


def arm_error(address: str, error: Exception) -> ArmError:
    """Return what a connection raised: whether a person at the robot can change it, or only this computer's user."""
    ours = isinstance(error, franky.IncompatibleVersionException | franky.RealtimeException)
    return (ArmError if ours else RobotAwayError)(sentence(address, error))


def _advice(error: Exception, text: str) -> str:
    if isinstance(error, franky.IncompatibleVersionException):
        return "check that the robot's system image and the installed libfranka fit (versions: docs/how-to/franka.md)"
    if isinstance(error, franky.RealtimeException):
        return "check that a PREEMPT_RT kernel is running and that this user may set real-time priorities"
    if "refused" in text:
        return "check the address and that FCI is activated in Desk, or that the twin is running"
    if isinstance(error, franky.NetworkException) or "Net Exception" in text:
        return "check the cable, the robot's power and that the address is its own"
    if isinstance(error, franky.ControlException):
        return "look at the robot, clear what it met, then reset"
    return "check that the brakes are open, the user stop is released and Desk is in execution mode"
