"""The unmodified ur_rtde client against the twin: what the driver calls works, every other command is refused."""

import socket
import time
from contextlib import suppress

import dashboard_client
import numpy as np
import pytest
import rtde_control
import rtde_receive
from real_time import HoldUps, wait_until
from ur_twin import TwinProcess

from bid_ros.robots.ur.config import UrConfig
from bid_ros.robots.ur.kinematics import UR5, UR5E
from bid_ros.robots.ur.process import firmware
from bid_ros.robots.ur.twin.script_port import SCRIPT_PORT

# Far from every singularity, tool down in front of the arm.
HOME = [0.0, -1.5708, 1.5708, -1.5708, -1.5708, 0.0]
UNLOCK_DELAY_S = 1.0  # a robot waits 5 s; shorter than this, and a busy computer asks too late to be refused


def receiver(address: str, rate: float = 500.0) -> rtde_receive.RTDEReceiveInterface:
    """A client that asks for what ur_rtde asks for by default."""
    return rtde_receive.RTDEReceiveInterface(address, rate)


# --- twins of their own; first, as the bench runs on from its first test until the file ends --------------------------

# The twin runs ur_rtde's control script and no other URScript. What ends it is the same for those of the long lane.
OWN_PROGRAMS = (
    "sendCustomScript",
    "setCustomScriptFile",
    pytest.param("sendCustomScriptFunction", marks=pytest.mark.long),
    pytest.param("sendCustomScriptFile", marks=pytest.mark.long),
)


@pytest.mark.parametrize("name", OWN_PROGRAMS)
def test_a_program_of_the_users_own_fails_at_the_client_at_once(tmp_path, name):
    script = "def mine():\n  movej([0,0,0,0,0,0])\nend\n"
    file = tmp_path / "mine.script"
    file.write_text(script)
    arguments = {"sendCustomScript": (script,), "sendCustomScriptFunction": ("mine", "movej([0,0,0,0,0,0])")}
    twin = TwinProcess("--no-physics")
    try:
        control = rtde_control.RTDEControlInterface(twin.address)
        with HoldUps() as since:
            if name == "setCustomScriptFile":  # answers nothing
                control.setCustomScriptFile(str(file))
            else:
                with pytest.raises(RuntimeError, match="write: "):
                    getattr(control, name)(*arguments.get(name, (str(file),)))
            assert since.seconds() < 2.0
        assert not control.isProgramRunning()
        wait_until(lambda: "the twin runs ur_rtde's control script only" in twin.log())
        if name != "setCustomScriptFile":
            control.disconnect()
            assert control.reconnect() and control.moveJ(HOME, 3.0, 20.0)
        control.disconnect()
    finally:
        twin.close()


def test_a_robot_in_local_control_refuses_the_client():
    twin = TwinProcess("--no-physics", "--local")
    try:
        with pytest.raises(Exception, match="enable remote control"):
            rtde_control.RTDEControlInterface(twin.address)
        dashboard = dashboard_client.DashboardClient(twin.address)
        dashboard.connect()
        assert not dashboard.isInRemoteControl()
        with pytest.raises(RuntimeError, match="switch robot to Remote Control mode"):
            dashboard.stop()
        assert twin.pendant("remote") == "ok"
        with pytest.raises(RuntimeError, match="reconnect to port 29999"):
            dashboard.stop()
        dashboard.disconnect()
        dashboard.connect()
        dashboard.stop()
    finally:
        twin.close()


def test_cb3_runs_at_125_hz():
    twin = TwinProcess("--no-physics", "--generation", "cb3")
    try:
        receive = receiver(twin.address, 125.0)
        control = rtde_control.RTDEControlInterface(twin.address)
        np.testing.assert_allclose(receive.getActualTCPPose(), UR5.forward(HOME), atol=1e-9)
        stamps = [receive.getTimestamp()]
        while len(stamps) < 20:
            if receive.getTimestamp() != stamps[-1]:
                stamps.append(receive.getTimestamp())
        assert min(np.diff(stamps)) == pytest.approx(0.008, abs=1e-9)
        target = [value + 0.05 for value in HOME]
        for _ in range(20):
            assert control.servoJ(target, 0.5, 0.5, 0.008, 0.05, 600)
            time.sleep(0.008)
        wait_until(lambda: np.allclose(receive.getActualQ(), target, atol=1e-3))
        assert control.servoStop()
        control.disconnect()
        receive.disconnect()
    finally:
        twin.close()


# --- the bench of the other tests --------------------------------------------------------------------------------


class Bench:
    """The twin and one client of each kind."""

    def __init__(self) -> None:
        self.twin = TwinProcess("--no-physics", "--unlock-delay", str(UNLOCK_DELAY_S))
        self.receive = receiver(self.twin.address)
        self.control = rtde_control.RTDEControlInterface(self.twin.address)
        self.dashboard = dashboard_client.DashboardClient(self.twin.address)
        self.dashboard.connect()

    def recover(self) -> None:
        """Bring robot and program back to where a test may begin."""
        if self.receive.isProtectiveStopped():
            wait_until(self._unlocked)
        if self.receive.getRobotMode() != 7:
            self.dashboard.brakeRelease()
            wait_until(lambda: self.receive.getRobotMode() == 7)
        if not self.control.isProgramRunning():
            # The register may still hold the streaming command that failed; a command to a stopped program clears it.
            self.control.stopScript()
            assert self.control.reuploadScript()
            wait_until(self.control.isProgramRunning)

    def _unlocked(self) -> bool:
        """Ask for the end of a protective stop, which is refused while it is fresh by the controller's own clock."""
        with suppress(RuntimeError, ValueError):
            self.dashboard.unlockProtectiveStop()
        return not self.receive.isProtectiveStopped()

    def home(self) -> None:
        assert self.control.moveJ(HOME, 3.0, 20.0)

    def pose(self, **offset: float) -> list[float]:
        pose = self.receive.getActualTCPPose()
        for name, value in offset.items():
            pose["xyz".index(name)] += value
        return pose

    def at(self, q: list[float], tolerance: float = 1e-6) -> bool:
        return bool(np.allclose(self.receive.getActualQ(), q, atol=tolerance))

    def close(self) -> None:
        for client in (self.control, self.receive, self.dashboard):
            client.disconnect()
        self.twin.close()


@pytest.fixture(scope="module")
def shared():
    """The bench of all tests, in a list: a test that fails may leave one behind that no other test can use."""
    made = [Bench()]
    yield made
    made[0].close()


@pytest.fixture
def bench(shared):
    try:
        shared[0].recover()
    except (AssertionError, RuntimeError):
        shared[0].close()
        shared[0] = Bench()
    return shared[0]


# --- RTDEControlInterface: name -> what is done with it --------------------------------------------------------------


def servo_j(b):
    target = [value + 0.05 for value in HOME]
    for _ in range(50):
        start = b.control.initPeriod()
        assert b.control.servoJ(target, 0.5, 0.5, 0.002, 0.05, 600)
        b.control.waitPeriod(start)
    wait_until(lambda: b.at(target, 1e-3))
    assert b.control.servoStop(10.0)
    wait_until(lambda: max(map(abs, b.receive.getActualQd())) == 0.0, 0.5)


def servo_l(b):
    target = b.pose(z=-0.04)
    assert b.control.servoL(target, 0.5, 0.5, 0.002, 0.05, 600)
    wait_until(lambda: np.allclose(b.receive.getActualTCPPose(), target, atol=1e-3))
    assert b.control.servoStop()


def move_j(b):
    target = [value + 0.2 for value in HOME]
    assert b.control.moveJ(target, 3.0, 10.0)
    wait_until(lambda: b.at(target), 0.5)


def stop_j_asynchronously(b):
    target = [value + 0.5 for value in HOME]
    assert b.control.moveJ(target, 0.5, 10.0, True)
    assert b.control.getAsyncOperationProgress() == 0
    b.control.stopJ(20.0, True)
    wait_until(lambda: b.control.getAsyncOperationProgress() < 0)
    wait_until(lambda: max(map(abs, b.receive.getActualQd())) == 0.0, 0.5)
    assert not b.at(target, 0.05)


def stop_j(b):
    assert b.control.moveJ([value + 1.0 for value in HOME], 1.0, 10.0, True)
    wait_until(lambda: b.receive.getActualQd()[0] > 0.5)
    b.control.stopJ(30.0)
    wait_until(lambda: max(map(abs, b.receive.getActualQd())) == 0.0)


def stop_script(b):
    assert b.control.moveJ([value + 1.0 for value in HOME], 0.5, 20.0, True)
    wait_until(lambda: b.receive.getActualQd()[0] > 0.49)
    b.control.stopScript()
    assert not b.control.isProgramRunning()
    wait_until(lambda: b.receive.getRuntimeState() == 1)
    assert max(map(abs, b.receive.getActualQd())) == 0.0


def settings(b):
    flange = UR5E.forward(HOME)
    assert b.control.setTcp([0.0, 0.0, 0.1, 0.0, 0.0, 0.0])
    wait_until(lambda: b.receive.getActualTCPPose()[2] == pytest.approx(flange[2] - 0.1))  # the tool looks down
    assert b.control.setTcp([0.0] * 6)
    assert b.control.setPayload(1.2, [0.0, 0.0, 0.1])
    assert b.control.isJointsWithinSafetyLimits(HOME)
    assert not b.control.isJointsWithinSafetyLimits([7.0, *HOME[1:]])


def watchdog(b):
    assert b.control.setWatchdog(10.0)
    for _ in range(10):
        assert b.control.kickWatchdog()
        assert b.control.isProgramRunning()
        time.sleep(0.03)
    wait_until(lambda: not b.control.isProgramRunning())
    assert "watchdog" in b.twin.log()


def connection(b):
    assert b.control.isConnected()
    b.control.disconnect()
    assert not b.control.isConnected()
    assert b.control.reconnect()
    assert b.control.isConnected() and b.control.isProgramRunning()
    assert b.control.getRobotStatus() == 3


def freedrive(b):
    assert b.control.freedriveMode()
    assert (b.receive.getRobotMode(), b.receive.getSafetyMode()) == (7, 1)  # as a controller reports it
    assert b.control.moveJ([value + 0.3 for value in HOME], 3.0, 20.0) and b.at(HOME)
    assert b.control.endFreedriveMode() and b.control.isProgramRunning()
    assert b.control.teachMode() and b.control.endTeachMode() and b.control.isProgramRunning()
    assert b.control.moveJ([value + 0.05 for value in HOME], 3.0, 20.0)
    assert not b.at(HOME, 0.04)


def ends_of_modes(b):
    b.control.endFreedriveMode()
    assert b.control.endTeachMode() and b.control.forceModeStop() and b.control.isProgramRunning()


EXERCISED = (
    freedrive,
    ends_of_modes,
    servo_j,
    servo_l,
    move_j,
    stop_j,
    stop_j_asynchronously,
    stop_script,
    settings,
    watchdog,
    connection,
)
# Commands that the driver does not give. The twin ends the program with a sentence: a silent success would be a lie.
UNSUPPORTED = {
    "forceMode": (HOME, [0] * 6, [0.0] * 6, 2, [0.1] * 6),
    "forceModeSetDamping": (0.1,),
    "forceModeSetGainScaling": (0.5,),
    "zeroFtSensor": (),
    "ftRtdeInputEnable": (True,),
    "enableExternalFtSensor": (True,),
    "getJointTorques": (),
    "toolContact": ([0.0] * 6,),
    "startContactDetection": (),
    "readContactDetection": (),
    "stopContactDetection": (),
    "moveUntilContact": ([0.0, 0.0, -0.1, 0.0, 0.0, 0.0],),
    "getFreedriveStatus": (),
    "servoC": (HOME,),
    "setGravity": ([0.0, 0.0, 9.81],),
    "directTorque": ([0.0] * 6,),
    "getMassMatrix": (),
    "getCoriolisAndCentrifugalTorques": (),
    "getTargetJointAccelerations": (),
    "getJacobian": (),
    "getJacobianTimeDerivative": (),
    "speedJ": ([0.1] * 6, 1.0, 0.0),
    "speedL": ([0.1] * 6, 1.0, 0.0),
    "speedStop": (1.0,),
    "moveL": (HOME, 1.0, 1.0),
    "moveL_FK": (HOME, 1.0, 1.0),
    "moveJ_IK": (HOME, 1.0, 1.0),
    "jogStart": ([0.0] * 6, 0),
    "setTargetPayload": (1.0, [0.0] * 3, [0.1] * 6),
    "triggerProtectiveStop": (),
    "isSteady": (),
    "isPoseWithinSafetyLimits": (HOME,),
    "getTCPOffset": (),
    "getTargetWaypoint": (),
    "poseTrans": (HOME, HOME),
}
# ur_rtde answers True to these as soon as they are sent, before a controller could have said anything.
ANSWERED_UNHEARD = {"forceMode", "servoC", "directTorque", "speedJ", "speedL"}


@pytest.mark.parametrize("check", EXERCISED, ids=lambda check: check.__name__)
def test_control_interface(bench, check):
    bench.home()
    check(bench)


def fails(call) -> bool:
    """Whether a call raises, or answers with what nobody can take for success or a measurement."""
    try:
        answer = call()
    except RuntimeError as error:
        return "did not succeed" in str(error) or "unable to get state data" in str(error)
    if answer is True:
        return False
    return answer is False or answer == [] or bool(np.isnan(answer).any() or np.any(np.less(answer, 0)))


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_command_fails_at_the_client_at_once(bench, name):
    assert bench.control.reuploadScript()  # a new program has no answers of earlier queries in its registers
    wait_until(bench.control.isProgramRunning)
    before = bench.twin.log().count("is not simulated by the twin")
    arguments = UNSUPPORTED[name]

    def call():
        return getattr(bench.control, name)(*arguments)

    with HoldUps() as since:
        assert call() is True if name in ANSWERED_UNHEARD else fails(call)
        wait_until(lambda: not bench.control.isProgramRunning(), 1.0)
        # Without a program the client answers 0 by itself, whatever a controller says.
        assert call() == 0 if name == "toolContact" else fails(call)
        assert since.seconds() < 1.0
    assert bench.twin.log().count("is not simulated by the twin") == before + 1


def test_stop_program_of_another_client_ends_the_program(bench):
    bench.recover()
    for port in (30001, 30002, 30003):
        with socket.create_connection((bench.twin.address, port), 2.0) as other:
            other.sendall(b"stop program\n")
            wait_until(lambda: not bench.control.isProgramRunning())
        bench.recover()
    assert bench.twin.log().count("a client sent stop program") == 3


def test_a_field_that_the_twin_lacks_is_refused_at_the_client(bench):
    with pytest.raises(Exception, match="tool_temperature"):
        rtde_receive.RTDEReceiveInterface(bench.twin.address, 125.0, ["timestamp", "tool_temperature"])
    known = rtde_receive.RTDEReceiveInterface(
        bench.twin.address, 125.0, ["timestamp", "tcp_force_scalar", "elbow_position", "elbow_velocity"]
    )
    known.disconnect()


# --- RTDEReceiveInterface ---------------------------------------------------------------------------------------------


def test_values_say_what_the_arm_does(bench):
    bench.home()
    receive = bench.receive
    assert (receive.getRobotMode(), receive.getSafetyStatusBits(), receive.getRuntimeState()) == (7, 1, 2)
    assert receive.getRobotStatus() == 3
    assert receive.getTargetQ() == receive.getActualQ() and receive.getActualQd() == [0.0] * 6
    np.testing.assert_allclose(receive.getTargetTCPPose(), receive.getActualTCPPose(), atol=1e-9)
    before = receive.getTimestamp()
    wait_until(lambda: receive.getTimestamp() > before + 0.1)
    np.testing.assert_allclose(UR5E.forward(HOME), receive.getActualTCPPose(), atol=1e-6)
    assert (receive.getSafetyMode(), receive.getJointMode()) == (1, [253] * 6)
    assert receive.getJointTemperatures() == [25.0] * 6 and receive.getSpeedScaling() == 1.0


def test_speeds_are_those_of_joints_and_tool(bench):
    bench.home()
    assert bench.control.moveJ([HOME[0] + 0.5, *HOME[1:]], 1.0, 5.0, True)
    wait_until(lambda: bench.receive.getActualQd()[0] > 0.5)
    pose, speed = bench.receive.getActualTCPPose(), bench.receive.getActualTCPSpeed()
    # The base turns alone, so the tool moves on a circle about the vertical axis.
    assert abs(np.dot(pose[:2], speed[:2])) < 0.01 and speed[5] > 0.5 and abs(speed[2]) < 1e-6
    assert bench.control.setPayload(0.5, [0.0, 0.0, 0.1])
    wait_until(lambda: bench.receive.getPayload() == 0.5)
    assert bench.receive.getPayloadCog() == [0.0, 0.0, 0.1]
    wait_until(lambda: not any(bench.receive.getActualQd()))


# --- DashboardClient --------------------------------------------------------------------------------------------------


def test_dashboard_reads(bench):
    dashboard = bench.dashboard
    assert dashboard.isConnected()
    assert dashboard.robotmode() == "Robotmode: RUNNING"
    assert dashboard.safetymode() == "Safetymode: NORMAL" and dashboard.running()
    assert dashboard.polyscopeVersion() == "5.11.0.108249" and dashboard.getSerialNumber().isdigit()
    assert firmware(UrConfig(bench.twin.address, twin=True)) == "PolyScope 5.11.0.108249"
    assert dashboard.isInRemoteControl()
    dashboard.closeSafetyPopup()
    dashboard.send("nonsense\n")
    assert dashboard.receive() == 'could not understand: "nonsense"'
    dashboard.quit()
    dashboard.disconnect()
    dashboard.connect()


def test_dashboard_stops_the_program(bench):
    bench.home()
    assert bench.control.moveJ([value + 1.0 for value in HOME], 0.3, 20.0, True)
    wait_until(lambda: bench.receive.getActualQd()[0] > 0.29)
    bench.dashboard.stop()
    wait_until(lambda: max(map(abs, bench.receive.getActualQd())) == 0.0)
    assert not bench.dashboard.running()


def test_dashboard_switches_power(bench):
    bench.dashboard.powerOff()
    wait_until(lambda: bench.receive.getRobotMode() == 3)
    assert bench.receive.getRobotStatus() == 0
    wait_until(lambda: not bench.control.isProgramRunning())
    assert not bench.control.moveJ(HOME, 1.0, 1.0)
    bench.dashboard.powerOn()
    wait_until(lambda: bench.receive.getRobotMode() == 5)
    bench.dashboard.brakeRelease()
    wait_until(lambda: bench.receive.getRobotMode() == 7)


def test_protective_stop_is_released_over_the_dashboard_after_its_delay(bench):
    assert bench.twin.pendant("protective stop the arm hit the table") == "ok"
    with pytest.raises((RuntimeError, ValueError), match="Cannot unlock protective stop until 5s"):
        bench.dashboard.unlockProtectiveStop()
    wait_until(bench.receive.isProtectiveStopped)
    assert "the arm hit the table" in bench.twin.log()
    assert bench.control.reuploadScript() and not bench.control.isProgramRunning()
    bench.recover()
    bench.home()


# --- the controller as a whole ----------------------------------------------------------------------------------------


def test_another_program_is_refused(bench):
    before = bench.receive.getActualQ()
    with socket.create_connection((bench.twin.address, SCRIPT_PORT), 5.0) as link:
        link.sendall(b"def mine():\n  movej([0,0,0,0,0,0])\nend\n")
        with pytest.raises(ConnectionResetError):
            link.recv(1000)
    assert "a program that begins 'def mine():'; the twin runs ur_rtde's control script only" in bench.twin.log()
    assert bench.receive.getActualQ() == before and bench.control.isProgramRunning()


def test_a_second_control_interface_finds_the_registers_in_use(bench):
    with pytest.raises(RuntimeError, match="already in use"):
        rtde_control.RTDEControlInterface(bench.twin.address)
    bench.home()


def test_a_new_client_takes_over_where_an_old_one_left_the_script_running(bench):
    bench.control.disconnect()
    second = rtde_control.RTDEControlInterface(bench.twin.address)
    assert second.moveJ(HOME, 3.0, 20.0)
    second.disconnect()
    assert bench.control.reconnect()
