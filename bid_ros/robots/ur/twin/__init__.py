"""The UR twin: a controller that speaks what ur_rtde expects, over a simulated UR5e."""
