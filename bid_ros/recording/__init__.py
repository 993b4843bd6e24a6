"""Recordings: rosbag2 bags out and in, episodes, and the data sets made of them."""
