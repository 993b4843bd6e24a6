"""What the small tasks of several tests have in common, as their files hold it; each adds what it sees and does."""

SMALL = {
    "name": "small",
    "robot": "franka",
    "description": "Place it.",
    "rate_hz": 10,
    "observation_steps": 2,
    "horizon": 4,
    "limits": {"workspace_min": [0.0, -1.0, 0.0], "workspace_max": [1.0, 1.0, 1.0]},
}
