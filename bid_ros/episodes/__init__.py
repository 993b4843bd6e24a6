"""Episodes without ROS: rehearsal, the log of a run, its summary, comparisons of runs."""
