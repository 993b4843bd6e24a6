"""Checkpoints of the published Diffusion Policy (Chi et al., RSS 2023), read without running any code of theirs."""
