"""ROS 2 nodes. They only wire: parameters to configurations, messages to values, and back."""
