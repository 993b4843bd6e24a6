"""ROS 2 nodes: wiring only. Parameters become configurations, messages become values, and back."""
