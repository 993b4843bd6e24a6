"""Random bytes at every port of both twins, for a moment; ``scripts/fuzz_ports.py`` does it for minutes."""

import pytest
from fci_client import MOVING, RawClient, lockstep
from fuzz_ports import Fuzz, ports
from real_time import wait_until
from ur_twin import TwinProcess, free_address

STEPS = 100


@pytest.mark.parametrize("with_client", [True, False], ids=["client", "alone"])
def test_a_franka_twin_goes_on(with_client, caplog):
    address = free_address()
    with lockstep(address) as controller:
        assert ports("tcp", address) == [1337, 1338]
        client = RawClient(controller) if with_client else None
        if client is not None:
            client.connect()
            client.move()
        fuzz = Fuzz(address, 1)
        for _ in range(STEPS):
            fuzz.step()
            if client is None:
                controller.cycle()
            else:
                assert client.control(torque=(0.0,) * 7).mode == MOVING
        assert fuzz.connections == STEPS
        assert fuzz.datagrams == (STEPS if with_client else 0)
        fuzz.close()
        if client is not None:
            client.close()
        controller.cycle()
        again = RawClient(controller)
        assert [answer[0] for answer in again.connect()] == [0]
        again.close()
    assert len(caplog.messages) > STEPS / 4
    assert all(message.startswith("Franka twin: ") and "\n" not in message for message in caplog.messages)


def test_a_ur_twin_goes_on():
    address = free_address()
    twin = TwinProcess(address=address)
    try:
        assert {29999, 30003, 30004} <= set(ports("tcp", address))
        fuzz = Fuzz(address, 2)
        for _ in range(STEPS):
            fuzz.step()
        fuzz.close()
        wait_until(lambda: twin.log().count("its connection is closed") > STEPS / 8)
        assert twin.pendant("statistics").startswith("{"), "it answers"
        assert "Traceback" not in twin.log()
    finally:
        twin.close()
