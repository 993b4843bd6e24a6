"""A gamepad on a topic that nobody knows: a person presses what is asked for, and the settings fit what arrives."""

import json
import threading

import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from sensor_msgs.msg import Joy as JoyMessage

from bid_ros.cli import main
from bid_ros.core.errors import BidError
from bid_ros.nodes.joy_lesson import learn_joy
from bid_ros.teleop.joy import DEVICE, Joy

# A pad that is none of those known: 12 buttons, and its axes in an order of its own. Forward and left are positive.
BUTTONS = {"south": 2, "east": 1, "north": 3, "left_bumper": 4, "select": 8, "start": 9}
AXES = {"left_x": 3, "left_y": 2, "right_x": 1, "right_y": 0, "hat_x": 4, "hat_y": 5}
NAMESPACE = "/left"


def message(buttons=(), **axes):
    places = {AXES[name]: value for name, value in axes.items()}
    return JoyMessage(axes=[places.get(at, 0.0) for at in range(6)], buttons=[int(at in buttons) for at in range(12)])


class Pad:
    """A gamepad and the person who holds it: it publishes its state 50 times a second, as joy_node repeats it."""

    def __init__(self):
        self._context = Context()
        rclpy.init(context=self._context)
        self._node = Node("pad", context=self._context, namespace=NAMESPACE)
        self._states, self._gone = [], threading.Event()
        self._does = [message((at,)) for at in BUTTONS.values()] + [message(**{name: 1.0}) for name in AXES]
        self._thread = threading.Thread(target=self._publish)
        self._thread.start()

    def say(self, text):
        if text.startswith(("press", "push")):
            self._states += [self._does.pop(0)] * 5

    def unplug(self):
        self._gone.set()
        self._thread.join()

    def close(self):
        self.unplug()
        rclpy.shutdown(context=self._context)

    def _publish(self):
        publisher = self._node.create_publisher(JoyMessage, "joy", 10)
        while not self._gone.wait(0.02):
            publisher.publish(self._states.pop(0) if self._states else message())
        self._node.destroy_node()


@pytest.fixture
def pad(ros_domain):
    made = Pad()
    yield made
    made.close()


def test_what_is_pressed_on_a_topic_gives_settings_that_read_it(pad):
    learned = learn_joy(DEVICE.read(""), NAMESPACE, pad.say)
    assert learned == {"buttons": BUTTONS, "axes": AXES}
    joy = Joy(DEVICE.read(json.dumps(learned)))
    joy.hear("joy", message((BUTTONS["left_bumper"],), left_y=1.0, right_x=1.0), 0)
    command = joy.poll(1)
    assert command.live and command.twist.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0, 1.0]


def test_a_gamepad_that_goes_and_one_that_never_came_are_one_sentence(pad, capsys):
    def unplugs(text):
        if text.startswith("press"):
            pad.unplug()

    with pytest.raises(BidError, match="gamepad on /left/joy is gone: nobody publishes it any more"):
        learn_joy(DEVICE.read(""), NAMESPACE, unplugs)
    with pytest.raises(BidError, match=r"no sensor_msgs/Joy arrived on /left/pedal in 0.1 s; start its node"):
        learn_joy(DEVICE.read("topic: pedal"), NAMESPACE, lambda text: None, heard_s=0.1)
    assert main(["teleop", "--learn", "--device", "page"]) == 2
    error = capsys.readouterr().err
    assert "device 'page'; valid are gamepad and joy" in error and error.count("\n") == 1
