import pytest
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from bid_ros.core.margins import BINS, SAID, Margins
from bid_ros.curation.shares import gathered, margins_report, margins_table, read_margins

STORE = get_typestore(Stores.ROS2_JAZZY)
KIND = "diagnostic_msgs/msg/DiagnosticArray"


def margins(*shares: float, name: str = "course") -> str:
    made = Margins()
    for share in shares:
        made.over(name, share, 1.0)
    return made.text()


def write_bag(folder, *said: tuple[str, str]):
    """Write a bag in which nodes say their margins, one after the other."""
    types = STORE.types
    with Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connection = writer.add_connection("/diagnostics", KIND, typestore=STORE)
        for second, (node, text) in enumerate(said):
            stamp = types["builtin_interfaces/msg/Time"](second, 0)
            pairs = [types["diagnostic_msgs/msg/KeyValue"](SAID, text)]
            status = types["diagnostic_msgs/msg/DiagnosticStatus"](0, f"bid_ros: {node}", "", "ur5", pairs)
            message = types[KIND](types["std_msgs/msg/Header"](stamp, ""), [status])
            writer.write(connection, second * 10**9, STORE.serialize_cdr(message, KIND))
    return folder


def test_the_last_word_of_each_node_counts(tmp_path):
    bag = write_bag(
        tmp_path / "bag",
        ("arm", margins(0.1)),
        ("left/safety", margins(0.9, name="heartbeat of arm")),
        ("arm", margins(0.1, 0.3)),
        ("arm", "of another version"),
    )
    found = read_margins(bag)
    assert list(found) == ["safety heartbeat of arm", "arm course"], "the nearest to its limit first"
    assert found["arm course"].largest == 0.3 and found["arm course"].total == 2
    assert margins_report(found)["arm course"] == {
        "largest_share": 0.3,
        "comparisons": 2,
        "not_judged": 0,
        "counts": [0, 0, 1, 0, 0, 0, 1, *[0] * (BINS - 6)],
    }


def test_a_node_that_began_anew_counts_together_with_the_one_before(tmp_path):
    bag = write_bag(tmp_path / "bag", ("arm", margins(0.8, 0.1)), ("arm", margins(0.2)))
    assert read_margins(bag)["arm course"].largest == 0.8 and read_margins(bag)["arm course"].total == 3


def test_a_table_has_a_line_for_each_check_and_none_for_an_older_bag(tmp_path):
    bag = write_bag(tmp_path / "bag", ("arm", margins(0.25)))
    both = gathered([read_margins(bag), read_margins(bag)])
    assert both["arm course"].total == 2
    assert margins_table(both).splitlines()[1].split() == ["arm", "course", "0.250", "2"]
    assert not margins_table({})


def test_what_could_not_be_judged_is_shown_beside_what_was(tmp_path):
    made = Margins()
    made.over("sent torque", 0.1, 1.0)
    for name in ("sent torque", "sent torque", "old torque"):
        made.skip(name)
    bag = write_bag(tmp_path / "bag", ("arm", made.text()), ("arm", Margins().text()))
    found = gathered([read_margins(bag), read_margins(bag)])
    assert margins_report(found)["arm old torque"]["not_judged"] == 2
    lines = [line.split()[1:] for line in margins_table(found).splitlines()[1:]]
    assert sorted(lines) == [["old", "torque", "-", "0", "2"], ["sent", "torque", "0.100", "2", "4"]]


@pytest.mark.parametrize("text", ["", "{}"])
def test_a_node_without_margins_has_none(tmp_path, text):
    assert not read_margins(write_bag(tmp_path / "bag", ("recorder", text)))
