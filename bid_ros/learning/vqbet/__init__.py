"""VQ-BeT: its networks, their training and their graphs."""
