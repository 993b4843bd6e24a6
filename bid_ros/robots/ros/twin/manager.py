"""A robot under ros2_control, seen from its topics: joint states, URDF, controllers and which of them is active."""

import time
from typing import Any, Final

import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import Array
from bid_ros.robots.bus import Bus, Channel, Values, stamp
from bid_ros.robots.robotiq.twin import Fingers
from bid_ros.robots.ros.twin.cartesian import PERIOD_S, ImpedanceController, TwistServo
from bid_ros.robots.ros.twin.controllers import ForwardController, GripperController, JointController
from bid_ros.robots.ros.twin.description import BASE, NAMES, RANGE, SPEED, TOOL, StatePublisher, arm_urdf
from bid_ros.robots.ros.twin.trajectory_controller import TrajectoryController
from bid_ros.robots.ros.urdf import read_chain, serial_chain
from bid_ros.robots.ur.twin.plant import Plant

CYCLE_S: Final = 0.002
FREQUENCY: Final = 60.0  # rad/s of the servo, critically damped: it lags by 2 / FREQUENCY s
STATES_EVERY: Final = 4  # cycles between two joint states
LOOK_EVERY: Final = 2  # cycles between two looks at the topics
SERVO_EVERY: Final = round(PERIOD_S / CYCLE_S)  # cycles between two steps of the node that takes twists
ACTIVE, INACTIVE = (3, "active"), (2, "inactive")  # states of lifecycle_msgs/State
JOINT_STATES: Final = Channel("joint_states", "sensor_msgs/msg/JointState")
DESCRIPTION: Final = Channel("robot_description", "std_msgs/msg/String", latched=True)
ACTIVITY: Final = Channel(
    "controller_manager/activity", "controller_manager_msgs/msg/ControllerManagerActivity", latched=True
)
LIST: Final = Channel("controller_manager/list_controllers", "controller_manager_msgs/srv/ListControllers")
BROADCASTER: Final = "joint_state_broadcaster"


class PositionServo:
    """Joints that take positions, as the hardware interface of most arms does.

    Args:
        plant: what it moves.
    """

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self._target, self._rate = plant.joint_positions.copy(), np.zeros(len(plant.joint_positions))
        self.command = self._target.copy()
        """``(n,)`` rad, the command interface: what a controller has written last."""

    @property
    def joints(self) -> Array:
        """Measured joints ``(n,)`` rad."""
        return self._plant.joint_positions

    @property
    def speeds(self) -> Array:
        """Measured speeds ``(n,)`` rad/s."""
        return self._plant.joint_velocities

    def step(self, dt: float) -> None:
        """Pass ``dt`` s."""
        pull = FREQUENCY**2 * (self.command - self._target) - 2 * FREQUENCY * self._rate
        self._rate = self._rate + dt * pull
        self._target = self._target + dt * self._rate
        self._plant.step(self._target, self._rate, dt)


class RobotUnderControl:
    """The simulated robot. One thread only, that of :meth:`cycle`.

    Its joint states name the joints in the order of the alphabet, not from base to tool.

    Args:
        bus: its topics.
        plant: the arm.
        fingers: its gripper.
        frames: publishes where its links are; None: nobody does.

    Attributes:
        controllers: its joint controllers, by name.
        servo: its hardware.
    """

    def __init__(
        self,
        bus: Bus,
        plant: Plant,
        fingers: Fingers,
        frames: StatePublisher | None = None,
    ) -> None:
        self._bus, self._urdf = bus, arm_urdf()
        self.servo, self._frames = PositionServo(plant), frames
        self._gripper = GripperController(bus, fingers)
        chain = serial_chain(read_chain(self._urdf, BASE, TOOL, "the twin's URDF"))
        self._trajectories = TrajectoryController(NAMES)
        self._twists = TwistServo(chain, BASE, RANGE, SPEED)
        impedance = ImpedanceController(chain, lambda: bus.partners(ImpedanceController.topic), CYCLE_S)
        made: tuple[JointController, ...] = (self._trajectories, ForwardController(NAMES), impedance)
        self.controllers = {controller.name: controller for controller in made}
        self._active: JointController | None = None
        self._listed: list[Values] = []  # controllers and their states, as the service tells them
        self._cycles = 0
        self._order = sorted(range(len(NAMES)), key=lambda number: NAMES[number])

    def start(self, active: str = TrajectoryController.name) -> None:
        """Open the topics and activate a controller. Raises ArmError for a message type that is not there."""
        for controller in self.controllers.values():
            self._bus.listen(Channel(controller.topic, controller.type_name))
        self._bus.listen(Channel(TwistServo.topic, TwistServo.type_name))
        for channel in (JOINT_STATES, DESCRIPTION, ACTIVITY):
            self._bus.offer(channel)
        self._gripper.start()
        self._bus.serve(TrajectoryController.action, self._judge)
        self._bus.serve(LIST)
        if self._frames is not None:
            self._frames.start()
        self._bus.publish(DESCRIPTION.name, {"data": self._urdf})
        self.switch(active)

    def switch(self, name: str) -> None:
        """Activate one of the controllers, or with an empty name none. Raises ArmError if there is none of it."""
        if name and name not in self.controllers:
            raise ArmError(f"the twin has no controller '{name}'; valid are {', '.join(self.controllers)}")
        if self._active is self._trajectories:
            self._trajectories.deactivate()
        self._active = self.controllers.get(name)
        if self._active is not None:
            self._bus.news(self._active.topic)  # what came before is not for it
            self._active.activate(self.servo.joints)
        states = {BROADCASTER: ACTIVE, GripperController.name: ACTIVE}
        states |= {own: ACTIVE if own == name else INACTIVE for own in self.controllers}
        forward = [f"{joint}/position" for joint in NAMES]
        self._listed = [
            {"name": own, "state": label, "required_command_interfaces": forward * (own == ForwardController.name)}
            for own, (_, label) in states.items()
        ]
        named = [{"name": own, "state": {"id": number, "label": label}} for own, (number, label) in states.items()]
        self._bus.publish(ACTIVITY.name, {"header": {"stamp": stamp(time.time_ns())}, "controllers": named})

    def cycle(self) -> None:
        """Pass one cycle of the controllers and the hardware."""
        now_ns = time.time_ns()
        if self._cycles % LOOK_EVERY == 0:
            self._take(now_ns)
        if self._cycles % SERVO_EVERY == 0 and self._active is self._trajectories:
            path = self._twists.update(now_ns, self.servo.joints)
            if path:
                self._trajectories.follow(path)
        if self._active is not None:
            command = self._active.update(now_ns, self.servo.joints)
            if command is not None:
                self.servo.command = command
        self.servo.step(CYCLE_S)
        if self._cycles % STATES_EVERY == 0:
            self._publish_states()
        self._cycles += 1

    def _take(self, now_ns: int) -> None:
        self._bus.reply(LIST.name, {"controller": self._listed})
        self._gripper.look()
        for goal in self._bus.goals(TrajectoryController.action.name):
            self._trajectories.accept(goal, now_ns)
        for heard in self._bus.news(TwistServo.topic):
            self._twists.take(heard.message)
        for controller in self.controllers.values():
            for heard in self._bus.news(controller.topic):
                if controller is self._active:
                    controller.take(heard.message, now_ns)

    def _judge(self, goal: Any) -> str:
        """Return why a goal of the trajectory controller is refused; empty: it is accepted."""
        if self._active is not self._trajectories:
            return f"{TrajectoryController.name} is not active"
        return self._trajectories.refuses(goal.trajectory, time.time_ns())

    def _publish_states(self) -> None:
        joints, speeds, now_ns = self.servo.joints, self.servo.speeds, time.time_ns()
        self._bus.publish(
            JOINT_STATES.name,
            {
                "header": {"stamp": stamp(now_ns)},
                "name": [*(NAMES[number] for number in self._order), GripperController.joint],
                "position": [*(float(joints[number]) for number in self._order), self._gripper.position],
                "velocity": [*(float(speeds[number]) for number in self._order), 0.0],
            },
        )
        if self._frames is not None:
            self._frames.publish(now_ns, joints)
