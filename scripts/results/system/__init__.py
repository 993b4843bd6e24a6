"""What each node of a running system costs, against its budget."""
