"""Franka arms: the driver over franky, and a twin that serves libfranka's protocol."""

from bid_ros.robots.descriptor import RobotDescriptor, TwinMaker, later
from bid_ros.robots.franka.config import FrankaConfig

ROBOT = RobotDescriptor(
    name="franka",
    config=FrankaConfig,
    driver=later(f"{__name__}.driver:FrankaArm"),
    extra="franka",
    library="franky-control",
    ports=(1337, 1338),  # robot and gripper, fixed by the libfranka protocol
    template="franka_place",
    twin=TwinMaker(
        later(f"{__name__}.twin.twin:FrankaTwin"),
        later(f"{__name__}.model:scene_model"),
        later(f"{__name__}.model:picture_model"),
        f"{__name__}.model:LIMBS",
    ),
    joints=7,
    compliant=True,
    forward=later(f"{__name__}.kinematics:forward"),
    arm_model=later(f"{__name__}.kinematics:arm_model"),
    unready=later(f"{__name__}.hand:unready"),
    external_force=later(f"{__name__}.load:external_force"),
    firmware=later(f"{__name__}.firmware:firmware"),
    alike=later(f"{__name__}.alike:alike"),
)
