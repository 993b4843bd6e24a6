"""Universal Robots arms: the driver over ur_rtde, the kinematics, and a controller twin."""

from bid_ros.robots.descriptor import RobotDescriptor, TwinMaker, later
from bid_ros.robots.ur.config import JOINTS, UrConfig

ROBOT = RobotDescriptor(
    name="ur",
    config=UrConfig,
    driver=later(f"{__name__}.driver:UrArm"),
    extra="ur",
    library="ur-rtde",
    # RTDE, Dashboard, the script port and the gripper's URCap: fixed by the controller.
    ports=(30004, 29999, 30003, 63352),
    template="ur5_pick",
    twin=TwinMaker(
        later(f"{__name__}.twin.twin:UrTwin"),
        later(f"{__name__}.twin.model:scene_model"),
        later(f"{__name__}.twin.model:picture_model"),
        f"{__name__}.twin.model:LIMBS",
    ),
    joints=JOINTS,
    forward=later(f"{__name__}.kinematics:flange"),
    arm_model=later(f"{__name__}.reach:arm_model"),
    firmware=later(f"{__name__}.process:firmware"),
    alike=later(f"{__name__}.alike:alike"),
)
