"""Recordings: rosbag2 bags written and read, episodes, and data sets made from bags."""
