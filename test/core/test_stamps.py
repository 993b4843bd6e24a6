from builtin_interfaces.msg import Duration, Time
from sensor_msgs.msg import Image

from bid_ros.core.stamps import stamp_ns, stamp_to_ns


def test_seconds_and_nanoseconds_are_one_number():
    assert stamp_to_ns(Time(sec=1_700_000_000, nanosec=7)) == 1_700_000_000_000_000_007
    assert stamp_to_ns(Duration(sec=-1, nanosec=900_000_000)) == -100_000_000


def test_the_stamp_of_a_message_is_its_header_s():
    message = Image()
    message.header.stamp = Time(sec=1, nanosec=500_000_007)
    assert stamp_ns(message) == 1_500_000_007
