"""What not every Python of the suite has: PyTorch comes with the extra ``train``."""

from importlib.util import find_spec

TORCH = ["torch"] if find_spec("torch") else []
