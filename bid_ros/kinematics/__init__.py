"""Kinematics of robots, without the robots: what drivers and twins share."""
