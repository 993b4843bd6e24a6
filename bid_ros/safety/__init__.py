"""Safety without ROS: checks of whole chunks, heartbeat deadlines, grants, the latched stop, one source at a time."""
