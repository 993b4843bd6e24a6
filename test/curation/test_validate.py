"""Every check finds the fault that it is for, and nothing in a sound recording."""

import re
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Image
from std_msgs.msg import String

from bid_msgs.msg import ArmStatus
from bid_ros.core.topics import ARM_STATUS, EPISODE_EVENT, camera_topic
from bid_ros.curation.validate import validate_bag, validate_events
from bid_ros.formats import build_dataset
from bid_ros.recording.events import FILE, EventLog
from bid_ros.recording.writer import BagWriter

S, MS = 1_000_000_000, 1_000_000
START = 1_700_000_000 * S
WRIST = camera_topic("wrist")


def found(bag, task, **options):
    faults = [fault for item in validate_bag(bag, task, **options) for fault in item.faults]
    return [f"{fault.severity} {fault.check}: {fault.text}" for fault in faults]


def shifted(run, kit, topic, by, since=0.5):
    """Move the stamps of a topic by ns from ``since`` s on."""
    for _, name, message in run.items:
        stamp = message.header.stamp.sec * S + message.header.stamp.nanosec
        if name == topic and stamp >= START + since * S:
            kit.stamped(message, stamp + by, message.header.frame_id)
    return run


def states(run, since=0.0):
    """The states of the arm from ``since`` s on."""
    items = [m for _, name, m in sorted(run.items, key=lambda item: item[0]) if name == ARM_STATUS]
    return [m for m in items if m.header.stamp.sec * S + m.header.stamp.nanosec >= START + since * S]


def without(run, kit, topic, when):
    return kit.Run([item for item in run.items if item[1] != topic or not when((item[0] - START) / S)])


def frozen(run, kit, topic):
    for _, name, message in run.items:
        if name == topic:
            message.data = bytes(len(message.data))
    return run


def set_arm(run, kit, since, change):
    del kit
    for message in states(run, since):
        change(message)
    return run


def asked(width, measured):
    def change(message):
        message.reference_gripper, message.gripper_width = width, measured

    return change


def closing(message):
    at = message.header.stamp.sec + message.header.stamp.nanosec / S - START / S
    message.reference_gripper, message.gripper_width = 0.0, max(0.02, 0.06 - 0.1 * (at - 1.8))


def test_a_sound_recording_has_no_fault(make_run, task, tmp_path):
    assert found(make_run(episodes=2).write(tmp_path / "bag"), task) == []


@pytest.mark.parametrize(
    "spoil, expected",
    [
        (lambda r, k: without(r, k, WRIST, lambda s: 0.8 < s < 1.2), r"error gaps: camera/wrist/image: no mes"),
        (lambda r, k: without(r, k, ARM_STATUS, lambda s: 0.5 < s < 0.9), r"error gaps: arm/status: no messag"),
        (lambda r, k: without(r, k, WRIST, lambda s: s > 1.3), r"no message for 0\.7\d s at 1\.2 s; valid is up"),
        (lambda r, k: without(r, k, ARM_STATUS, lambda s: s * 50 % 5 < 1), r"warning drops: /arm/status: \d+ of"),
        (lambda r, k: shifted(r, k, WRIST, 7 * MS), r"error pairs: \d+ of \d+ stamps of frames are not on all"),
        (lambda r, k: shifted(r, k, ARM_STATUS, -3 * S), r"error clock: /arm/status: 1 stamps go backwards, by u"),
        (lambda r, k: shifted(r, k, ARM_STATUS, S, 0.7), r"error clock: /arm/status: the stamps jump by \+1\.00"),
        (lambda r, k: shifted(r, k, WRIST, S, -9), r"error clock: /camera/wrist/image: stamps lie up to 0\.9\d"),
        (lambda r, k: shifted(r, k, WRIST, -S, -9), r"warning clock: /camera/wrist/image: messages are 1\.0\d s"),
        (lambda r, k: frozen(r, k, WRIST), r"error stale: /camera/wrist/image: 20 equal images .* although the"),
        (lambda r, k: set_arm(r, k, 1.0, lambda m: setattr(m.tool.position, "x", 0.4) or
                                  setattr(m.tool.position, "y", 0.0) or setattr(m.tool.orientation, "z", 0.0)),
         r"error stale: /arm/status: the measured tool repeats one value for 1\.0 s at 1\.0 s"),
        (lambda r, k: set_arm(r, k, 1.5, lambda m: setattr(m.reference.position, "z", 1.5)),
         r"error limits: commanded z is 1\.500 m at 1\.5 s; the workspace is 0\.000 to 1\.000 m"),
        (lambda r, k: set_arm(r, k, 1.5, lambda m: setattr(m.tool.position, "z", -0.5)),
         r"warning limits: measured z is -0\.500 m at 1\.5 s"),
        (lambda r, k: set_arm(r, k, 1.9, lambda m: m.reference_twist.__setitem__(0, 0.7)),
         r"error limits: commanded speed is 0\.700 m/s at 1\.9 s, \d times above; the limit is 0\.500 m/s"),
        (lambda r, k: set_arm(r, k, 1.9, lambda m: m.reference_twist.__setitem__(0, 0.3)),
         r"error limits: commanded acceleration is 15\.000 m/s\^2 at 1\.9 s"),
        (lambda r, k: set_arm(r, k, 1.5, asked(0.2, 0.079)), r"error limits: commanded gripper width is 0\.2000"),
        (lambda r, k: set_arm(r, k, -9, lambda m: setattr(m, "reference", states(r)[0].reference) or
                                  asked(0.04, 0.039)(m)), r"error still: the arm never moves by 1 mm in 2\.0 s"),
        (lambda r, k: set_arm(r, k, 0.9, lambda m: setattr(m, "reference", states(r)[-1].reference) or
                                  asked(0.04, 0.039)(m)), r"warning still: the arm is still from 0\.9 s on, for 1\.1"),
        (lambda r, k: set_arm(r, k, 1.8, closing), r"error grasp: the episode ends at \d\.\d s while the gripp"),
        (lambda r, k: set_arm(r, k, 1.5, asked(0.0, 0.0005)), r"warning grasp: the gripper is shut at 1\.5 s \("),
        (lambda r, k: without(r, k, EPISODE_EVENT, lambda s: s > 1), r"error ending: the episode has no END"),
        (lambda r, k: without(r, k, EPISODE_EVENT, lambda s: True), r"error topics: the bag lacks episode/event"),
        (lambda r, k: set_arm(r, k, 1.0, lambda m: setattr(m, "mode", ArmStatus.STOPPED)), r"the arm stops at 1\.0"),
        (lambda r, k: without(r, k, WRIST, lambda s: True), r"the bag lacks camera/wrist/image \(sensor_msgs/msg/"
         r"Image\); of that type it has /camera/third_person/image: take one with --remap camera/wrist/image"),
    ],
)  # fmt: skip
def test_a_fault_is_found(make_run, task, kit, tmp_path, spoil, expected):
    bag = spoil(make_run(), kit).write(tmp_path / "bag")
    faults = found(bag, task)
    assert [text for text in faults if re.search(expected, text)], faults


@pytest.mark.parametrize(("lasts_s", "said"), [(119.9, False), (130.0, True)])
def test_an_episode_may_last_as_long_as_a_person_is_given_for_it(make_run, task, kit, tmp_path, lasts_s, said):
    """``bid record`` gives two minutes, though the task's policy has fewer."""
    items = [item for item in make_run().items if item[1] != EPISODE_EVENT or item[0] < START + S]
    end = next(item for item in make_run().items if item[1] == EPISODE_EVENT and item[0] > START + S)
    at = START + int(lasts_s * S)
    kit.stamped(end[2], at, "")
    bag = kit.Run([*items, (at, end[1], end[2])]).write(tmp_path / "bag")
    assert any("and a person 120 s" in text for text in found(bag, replace(task, episode_timeout=20.0))) == said


def test_stamps_of_another_clock_are_said_once_and_those_of_a_simulation_are_right(make_run, task, kit, tmp_path):
    run = make_run()
    for item in run.items:
        stamp = item[2].header.stamp
        kit.stamped(item[2], stamp.sec * S + stamp.nanosec - START + 100 * S, item[2].header.frame_id)
    faults = [text for text in found(run.write(tmp_path / "other"), task) if " clock: " in text]
    assert len(faults) == len({topic for _, topic, _ in run.items}) - 1  # events are of any time
    assert all(re.search(r"begin at \d+\.\d\d s, it at 17\d+\.\d\d s; valid is one clock", text) for text in faults)
    for number in range(25):
        run.add("/clock", START + number * 100 * MS, Clock())
    bag = run.write(tmp_path / "simulated", like={"/clock": "rosgraph_msgs/msg/Clock"})
    assert not [text for text in found(bag, task) if "clock" in text]


def test_an_event_topic_misses_nothing(make_run, task, tmp_path):
    run = make_run(seconds=20.0)
    for at in (*range(9), 1_900):  # a burst, and one more much later
        run.add("/button", START + 100 * MS + at * 10 * MS, String())
    bag = run.write(tmp_path / "bag", like={"/button": "std_msgs/msg/String"})
    assert not [text for text in found(bag, task) if "/button" in text]


def test_gaps_are_counted_as_a_data_set_cuts_there(make_run, task, kit, tmp_path):
    """Gaps of both cameras, in part at the same time, one of the arm, and one before the arm moves, which cuts none."""
    third = camera_topic("third_person")
    run = without(make_run(), kit, WRIST, lambda s: 0.18 < s < 0.42 or 0.98 < s < 1.22)
    run = without(run, kit, third, lambda s: 1.08 < s < 1.32)
    run = without(run, kit, ARM_STATUS, lambda s: 1.46 < s < 1.76)
    bag = run.write(tmp_path / "bag")
    (said,) = (text for text in found(bag, task) if "a data set cuts" in text)
    pieces = len(build_dataset([bag], task).episode_ends)
    assert pieces > 2 and f"into {pieces} pieces, first at " in said, said


def test_an_object_that_is_held_at_the_end_is_no_success_of_placing(make_run, task, kit, tmp_path):
    bag = set_arm(make_run(), kit, -9, asked(0.0, 0.04)).write(tmp_path / "bag")
    assert found(bag, task) == []
    assert any("still holds on at its end" in text for text in found(bag, replace(task, kind="placing")))


def test_wrong_types_and_sizes_are_named(make_run, task, kit, tmp_path):
    run = make_run()
    for _, topic, message in run.items:
        if topic == WRIST:
            message.height, message.width, message.step, message.data = 3, 4, 12, bytes(36)
    assert any("image 'wrist' is 3x4; the task says 6x8" in text for text in found(run.write(tmp_path / "small"), task))
    moved = kit.Run([(at, "arm/status" if name == "arm/tool_pose" else name, m) for at, name, m in run.items
                     if name != ARM_STATUS])  # fmt: skip
    bag = moved.write(tmp_path / "wrong", like={"arm/status": "arm/tool_pose"})
    assert any(
        "/arm/status has type geometry_msgs/msg/PoseStamped; valid is bid_msgs" in text for text in found(bag, task)
    )


def test_a_foreign_topic_is_taken_by_a_remapping(make_run, task, kit, tmp_path):
    run = make_run()
    foreign = kit.Run([(at, "/cam/raw" if name == WRIST else name, m) for at, name, m in run.items])
    bag = foreign.write(tmp_path / "bag", like={"/cam/raw": WRIST})
    assert any("lacks camera/wrist/image" in text for text in found(bag, task))
    assert found(bag, task, remapped={WRIST: "/cam/raw"}) == []


def test_the_clock_of_the_recorder_that_goes_back_is_found(make_run, task, kit, tmp_path):
    with BagWriter(tmp_path / "bag") as writer:
        kit.add_topic(writer, ARM_STATUS)
        for at in (10, 5):
            for k in range(5):
                assert writer.write("/arm/status", at * S + k, serialize_message(kit.stamped(ArmStatus(), at * S + k)))
            writer.flush()
    assert any("the recorder's clock went back by about 5.0 s" in text for text in found(tmp_path / "bag", None))


def test_what_cannot_be_read_is_a_fault_and_no_crash(make_run, task, tmp_path):
    bag = make_run().write(tmp_path / "bag")
    file = bag / "bag_0.mcap"
    content = bytearray(file.read_bytes())
    content[2000:2400] = bytes(400)
    file.write_bytes(content)
    assert any(text.startswith("error readable: bag") for text in found(bag, task))
    file.write_bytes(b"")
    (text,) = found(bag, task)
    assert text.endswith("is empty: it has 0 bytes, so nothing was recorded")


def test_images_are_not_decoded_and_not_kept(make_run, task, tmp_path, kit):
    """Images of 25 MB are read with little memory."""
    run = make_run()
    big = kit.Run([item for item in run.items if item[1] != WRIST])
    pixels = np.random.default_rng(0).integers(0, 256, 1_000_000, np.uint8).tobytes()
    for k in range(25):
        message = Image(height=1000, width=1000, encoding="mono8", step=1000, data=pixels)
        big.add(WRIST, START + k * 20 * MS, kit.stamped(message, START + k * 20 * MS - MS, "wrist"))
    bag = big.write(tmp_path / "bag")
    tracemalloc.start()
    list(validate_bag(bag, task))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 15_000_000


def test_the_events_of_a_run_are_checked_wherever_the_path_points_in_it(tmp_path):
    (tmp_path / "run" / "bag").mkdir(parents=True)
    log = EventLog(tmp_path / "run")
    for rule in ("speed", "workspace"):
        log.write("stop", rule=rule)
    log.close()
    for path in (tmp_path, tmp_path / "run", tmp_path / "run" / "bag"):
        assert [(item.bag, item.faults) for item in validate_events([path])] == [(tmp_path / "run", ())]
    file = tmp_path / "run" / FILE
    file.write_text(file.read_text().replace("speed", "grant"))
    (found,) = validate_events([tmp_path])
    assert found.errors == 1 and found.faults[0].text.startswith("events.jsonl line 2 does not follow from line 1")
