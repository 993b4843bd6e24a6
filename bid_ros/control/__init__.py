"""From chunks to set-points: tracking, following, homing and planned motions. No ROS, no device."""
