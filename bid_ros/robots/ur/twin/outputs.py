"""What RTDE reports of the controller, written once a cycle for all clients.

Simulated: angles, speeds, currents, tool poses and speeds, modes, status bits, registers, tool centre point, payload,
digital and analog outputs. Not simulated and constant: temperatures and voltages at a quiet arm's values, forces,
moments, momentum, accelerometer, the tool's supply and outputs, and all inputs of control box and tool at zero.
"""

from typing import Final

from bid_ros.robots.ur.twin.machine import UrMachine
from bid_ros.robots.ur.twin.recipes import INPUT_REGISTERS, FieldTable
from bid_ros.robots.ur.twin.status import SAFETY_BITS

ECHOED: Final = tuple(INPUT_REGISTERS)
TEMPERATURE: Final = 25.0  # degrees C
VOLTAGE: Final = 48.0
VOLTAGES: Final = 0b11  # types of a pair of analog inputs or outputs; currents are 0


def write_constants(outputs: FieldTable) -> None:
    """Write what never changes."""
    outputs.set("joint_temperatures", *[TEMPERATURE] * 6)
    outputs.set("actual_joint_voltage", *[VOLTAGE] * 6)
    outputs.set("actual_main_voltage", VOLTAGE)
    outputs.set("actual_robot_voltage", VOLTAGE)
    outputs.set("tool_temperature", TEMPERATURE)
    outputs.set("tool_analog_input_types", VOLTAGES)


def write_outputs(machine: UrMachine, execution_s: float) -> None:
    """Write the state after a cycle that took ``execution_s`` s."""
    outputs = machine.outputs
    _write_arm(outputs, machine)
    _write_modes(outputs, machine)
    _write_settings(outputs, machine)
    outputs.copy(machine.inputs, ECHOED)
    outputs.set("timestamp", machine.clock_s)
    outputs.set("actual_execution_time", execution_s)


def _write_arm(outputs: FieldTable, machine: UrMachine) -> None:
    robot, tool = machine.robot, machine.robot.tool
    q, qd = robot.plant.joint_positions, robot.plant.joint_velocities
    outputs.set("target_q", *robot.q.tolist())
    outputs.set("target_qd", *robot.qd.tolist())
    outputs.set("target_qdd", *robot.qdd.tolist())
    outputs.set("joint_position_deviation_ratio", robot.deviation_ratio)
    outputs.set("actual_q", *q.tolist())
    outputs.set("actual_qd", *qd.tolist())
    currents = robot.plant.joint_currents.tolist()
    for name in ("actual_current", "target_current", "joint_control_output"):
        outputs.set(name, *currents)
    outputs.set("actual_TCP_pose", *tool.forward(q).tolist())
    outputs.set("target_TCP_pose", *tool.forward(robot.q).tolist())
    jacobian = tool.jacobian(q)
    outputs.set("actual_TCP_speed", *(jacobian @ qd).tolist())
    outputs.set("target_TCP_speed", *(jacobian @ robot.qd).tolist())


def _write_modes(outputs: FieldTable, machine: UrMachine) -> None:
    outputs.set("robot_mode", machine.robot_mode)
    outputs.set("joint_mode", *[machine.joint_mode] * 6)
    outputs.set("safety_mode", machine.safety_mode)
    outputs.set("safety_status", machine.safety_mode)
    outputs.set("tool_mode", machine.tool_mode)
    outputs.set("runtime_state", machine.runtime)
    outputs.set("robot_status_bits", machine.status_bits)
    outputs.set("safety_status_bits", SAFETY_BITS[machine.safety_mode])


def _write_settings(outputs: FieldTable, machine: UrMachine) -> None:
    robot, inputs = machine.robot, machine.inputs
    outputs.set("speed_scaling", robot.limiter(inputs.speed_slider))
    outputs.set("target_speed_fraction", inputs.speed_slider)
    outputs.set("actual_digital_output_bits", inputs.digital_outputs)
    for number, value in enumerate(inputs.analog_outputs):
        outputs.set(f"standard_analog_output{number}", value)
    outputs.set("analog_io_types", VOLTAGES | inputs.analog_output_types << 2)
    outputs.set("tcp_offset", *robot.tcp)
    outputs.set("payload", robot.payload)
    outputs.set("payload_cog", *robot.payload_cog)
    outputs.set("payload_inertia", *robot.payload_inertia)
