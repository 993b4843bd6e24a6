import math

import pytest

from bid_ros.core.errors import ArmError
from bid_ros.robots.ros.twin.description import NAMES, arm_urdf
from bid_ros.robots.ros.urdf import read_chain

LINKS = "".join(
    f'<link name="{name}"><visual><geometry/></visual></link>' for name in ("base", "a", "b", "side", "tool")
)
XACRO = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="x">
<xacro:include filename="arm.xacro"/><link name="base"/></robot>"""


def robot(first='type="revolute"', limit='<limit lower="-1" upper="2" velocity="3" effort="1"/>', links=LINKS):
    return f"""<robot name="small">{links}
      <joint name="two" type="continuous"><parent link="a"/><child link="b"/><limit velocity="4" effort="1"/></joint>
      <joint name="one" {first}><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>{limit}</joint>
      <joint name="beside" type="prismatic"><parent link="b"/><child link="side"/></joint>
      <joint name="end" type="fixed"><parent link="b"/><child link="tool"/><origin xyz="0 0 1"/></joint></robot>"""


def test_the_chain_is_in_order_from_base_to_tool_whatever_the_order_of_the_file():
    chain = read_chain(robot(), "base", "tool", "URDF x")
    assert chain.joint_names == ("one", "two")
    assert (chain.lower, chain.upper, chain.speed) == ((-1.0, -math.inf), (2.0, math.inf), (3.0, 4.0))
    assert list(chain.model.names) == ["universe", "one", "two"]
    assert [frame.name for frame in chain.model.frames][-1] == "tool"


def test_a_limit_that_is_not_there_is_not_a_number():
    chain = read_chain(robot(limit=""), "base", "tool", "URDF x")
    assert math.isnan(chain.lower[0]) and math.isnan(chain.upper[0]) and math.isnan(chain.speed[0])


def test_what_is_beside_the_chain_may_be_broken_and_a_joint_may_mimic_another():
    """Pinocchio would refuse the whole: its finger has no limits, a link has no geometry, a limit no effort."""
    text = robot(limit='<limit lower="-1" upper="2" velocity="3"/><mimic joint="beside"/>')
    assert read_chain(text, "base", "tool", "URDF x").joint_names == ("one", "two")


def test_the_twins_own_arm_has_its_joints():
    assert read_chain(arm_urdf(), "base_link", "tool0", "the twin").joint_names == NAMES


@pytest.mark.parametrize(
    ("text", "base", "tool", "said"),
    [
        ("<robot", "base", "tool", "URDF x is not XML: .*; valid is a URDF, not a xacro file"),
        ("<sdf/>", "base", "tool", "URDF x begins with <sdf>; valid is a URDF"),
        (robot(), "foot", "tool", "URDF x has no link 'foot'; valid are base, a, b, side, tool"),
        (robot(), "tool", "base", "link 'base' of URDF x is not below 'tool'"),
        (robot(), "base", "side", "joint 'beside' of URDF x is of type prismatic; valid between base and side are"),
        (robot(), "b", "tool", "has no joint that turns between b and tool"),
        (robot(limit='<limit lower="low"/>'), "base", "tool", "limits of joint 'one' of URDF x are no numbers"),
        ("", "base", "tool", "URDF x is not XML: no element found"),
        (XACRO, "base", "tool", "URDF x has no link 'tool'; valid are base"),
        (robot(first='type="floating"'), "base", "tool", "joint 'one' of URDF x is of type floating; valid between"),
        (robot(first=""), "base", "tool", "joint 'one' of URDF x is of type None; valid between"),
        (robot().replace('"two"', '"one"'), "base", "tool", "names a joint or link between base and tool twice"),
        (robot().replace('parent link="a"', 'parent link="c"'), "base", "tool", "'tool' of URDF x is not below 'base'"),
        (robot().replace("0 0 1", "0 nan 1"), "base", "tool", "axis of joint 'one' of URDF x is '0 nan 1'; valid are"),
    ],
)
def test_what_is_no_chain_is_one_sentence(text, base, tool, said):
    with pytest.raises(ArmError, match=said) as caught:
        read_chain(text, base, tool, "URDF x")
    assert "\n" not in str(caught.value)


SLANTED = """<robot name="x"><link name="a"/><link name="b"/><link name="c"/><link name="d"/>
<joint name="one" type="continuous"><parent link="a"/><child link="b"/><origin xyz="0.1 0 0.2" rpy="0.3 -0.2 1.1"/>
<axis xyz="0 0.6 0.8"/></joint>
<joint name="fixed" type="fixed"><parent link="b"/><child link="c"/><origin xyz="0 0.2 0" rpy="1 0 0.5"/></joint>
<joint name="two" type="revolute"><parent link="c"/><child link="d"/><axis xyz="-1 0 0"/>
<limit lower="-1" upper="1" velocity="2"/></joint></robot>"""


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            SLANTED.replace("0.3 -0.2 1.1", "0.3 -0.2"),
            "origin of joint 'one' of x is '0.3 -0.2'; valid are three numbers",
        ),
        (
            SLANTED.replace("0.1 0 0.2", "0.1 z 0.2"),
            "origin of joint 'one' of x is '0.1 z 0.2'; valid are three numbers",
        ),
        (SLANTED.replace("0 0.6 0.8", "0 0 0"), "axis of joint 'one' of x is 0 0 0; valid is a direction"),
    ],
)
def test_a_urdf_with_impossible_numbers_is_one_sentence(wrong, said):
    with pytest.raises(ArmError, match=said):
        read_chain(wrong, "a", "d", "x")
