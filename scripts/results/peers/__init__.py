"""The eager procedure of the published code, and how its speed compares with ours.

Written from the published procedures: Bidirectional Decoding (Liu et al., ICLR 2025) over Diffusion Policy (Chi et al.,
RSS 2023), and LeRobot's diffusion policy. Both call PyTorch one operation after the other.
"""

from bid_ros.core.extras import extra

with extra("train", "the comparison with PyTorch"):
    import torch as _torch  # noqa: F401  # so that a missing PyTorch is one sentence
