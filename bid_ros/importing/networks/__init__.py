"""Networks in the layout of other projects' checkpoints, whose tensors have the names of their attributes."""
