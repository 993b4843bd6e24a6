"""Any arm with a ROS 2 driver: ros2_control's joint controllers, or Cartesian ones; and a twin of the former."""

from bid_ros.robots.descriptor import RobotDescriptor, TwinMaker, later
from bid_ros.robots.ros.config import RosConfig

ROBOT = RobotDescriptor(
    name="ros",
    config=RosConfig,
    driver=later(f"{__name__}.driver:RosArm"),
    extra="ros",
    library="pin",
    ports=(),
    template="new/ros",
    twin=TwinMaker(
        later(f"{__name__}.twin.twin:RosTwin"),
        later("bid_ros.robots.ur.twin.model:scene_model"),
        later("bid_ros.robots.ur.twin.model:picture_model"),
        "bid_ros.robots.ur.twin.model:LIMBS",
    ),
    over_ros=True,
    arm_model=later(f"{__name__}.kinematics:arm_model"),
)
