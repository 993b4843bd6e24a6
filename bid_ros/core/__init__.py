"""Shared by every part: tasks, chunks, observations, time and errors. Knows no ROS and no device."""
