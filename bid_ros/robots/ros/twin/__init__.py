"""A robot under ros2_control, simulated: its controllers, its controller manager and its hardware."""
