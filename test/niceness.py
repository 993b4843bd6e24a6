"""What `nice` is allowed to do here: a container may deny even root to raise a priority."""

import os
import subprocess


def may_raise(by: int, before: int = 0) -> bool:
    """Return whether a process of ``before`` more steps of niceness than this one may lower them by ``by``."""
    command = ["nice", "-n", str(before), "nice", "-n", str(-by), "nice"]
    reached = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return reached == max(-20, min(19, os.nice(0) + before) - by)
