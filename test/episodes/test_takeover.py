"""Who moves the arm: the policy, a person, or nobody; never both."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.episodes.takeover import REST_NS, SILENCE_NS, Phase, Takeover

MS = 1_000_000


class Arm:
    """Plays an arm that needs 200 ms to rest after whoever moved it lost it, and a switch that speaks every 20 ms."""

    def __init__(self, return_s=0.5):
        self.takeover, self.now = Takeover(return_s), 10**12
        self.takeover.begin(self.now)
        self.held: bool | None = False
        self.still_ns = self.now
        self.heard = True
        self.history: list[str] = []

    def run(self, milliseconds):
        for _ in range(milliseconds // 20):
            self.now += 20 * MS
            if self.held is not None:
                self.takeover.switch(self.held, self.now)
            source = self.takeover.source(self.now)
            if source == "policy" or (source == "teleop" and self.held):
                self.still_ns = self.now + 200 * MS
            if self.heard:
                self.takeover.stated(self.now < self.still_ns, self.now)
            self.history.append(source)
        return self.history[-1]


def test_the_policy_drives_until_the_switch_is_held_and_the_arm_rests_between():
    arm = Arm()
    assert arm.run(1000) == "policy"
    arm.held = True
    assert arm.run(20) == ""
    assert arm.run(1000) == "teleop"
    arm.held = False
    assert arm.run(300) == "teleop", "it brakes as the person's motion"
    assert arm.takeover.phase is Phase.RETURNING
    assert arm.run(600) == "policy"
    changes = [now for now, before in zip(arm.history[1:], arm.history, strict=False) if now != before]
    assert changes == ["", "teleop", "policy"] and arm.takeover.count == 1
    assert arm.history.count("") * 20 >= 240, "it brakes before the person gets it"


def test_a_switch_that_is_let_go_for_a_moment_keeps_the_arm():
    arm = Arm()
    for held in (True, False, True, False, True):
        arm.held = held
        arm.run(400)
    assert "policy" not in arm.history[5:] and arm.takeover.count == 1


def test_a_device_that_falls_silent_leaves_the_arm_to_nobody_until_its_switch_was_held():
    for held in (False, True):
        arm = Arm()
        arm.held = held
        arm.run(1000)
        arm.held = None
        arm.run(SILENCE_NS // MS + 40)
        assert arm.run(5000) == "" and arm.takeover.phase is Phase.LOST
        arm.held = False
        assert arm.run(5000) == "", "the policy does not go on by itself"
        arm.held = True
        assert arm.run(1000) == "teleop"
        arm.held = False
        assert arm.run(2000) == "policy"


def test_a_switch_that_is_let_go_while_the_arm_brakes_gives_it_back_after_the_person_had_it():
    arm = Arm()
    arm.run(1000)
    arm.held = True
    arm.run(40)
    arm.held = False
    arm.run(3000)
    assert arm.history[-1] == "policy" and "teleop" in arm.history


def test_an_arm_that_never_rests_is_given_to_nobody():
    arm = Arm()
    arm.run(200)
    arm.held = True
    for _ in range(200):
        arm.still_ns = arm.now + 100 * MS
        assert arm.run(20) == ""


def test_an_arm_of_which_nothing_is_heard_is_given_to_nobody():
    arm = Arm()
    arm.run(200)
    arm.held, arm.heard = True, False
    assert arm.run(2000) == ""
    arm.heard = True
    assert arm.run(400) == "teleop"


def test_each_episode_begins_with_the_policy():
    arm = Arm()
    arm.held = True
    arm.run(1000)
    arm.takeover.begin(arm.now)
    assert arm.takeover.phase is Phase.POLICY and arm.takeover.count == 0


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_the_arm_rests_before_it_changes_hands(seed):
    rng, arm = np.random.default_rng(seed), Arm()
    for _ in range(60):
        arm.held = rng.choice([True, False, None], p=[0.45, 0.45, 0.1])
        arm.run(int(rng.integers(20, 900)))
    parts = "".join({"policy": "p", "teleop": "t", "": "-"}[item] for item in arm.history)
    assert "pt" not in parts, "the arm brakes between the policy and a person"
    for before in parts.split("t")[:-1]:
        quiet = len(before) - len(before.rstrip("-"))
        assert not before or quiet * 20 * MS >= REST_NS or not before.strip("-")
