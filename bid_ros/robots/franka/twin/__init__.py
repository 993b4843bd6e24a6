"""A Franka robot with its Hand in simulation: libfranka's two services over franky-sim's robot."""
