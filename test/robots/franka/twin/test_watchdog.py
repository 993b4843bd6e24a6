from bid_ros.robots.franka.twin.watchdog import PUBLISHED, SHARED, CommandWatchdog, Patience


def cycles_until_trip(watchdog, came=False, counted=True, most=10_000):
    return next((cycle for cycle in range(1, most + 1) if watchdog.trips(came, counted)), None)


def test_twenty_lost_in_a_row_as_published():
    assert Patience(lost=20, ended=20, gaps=False) == PUBLISHED
    assert cycles_until_trip(CommandWatchdog(PUBLISHED)) == 20


def test_one_command_begins_the_count_anew():
    watchdog = CommandWatchdog(PUBLISHED)
    for _ in range(50):
        assert not any(watchdog.trips(False, True) for _ in range(19))
        assert not watchdog.trips(True, True)
    assert watchdog.longest == 19


def test_a_patient_one_brakes_as_early_and_ends_the_motion_later():
    watchdog = CommandWatchdog(SHARED)
    assert not any(watchdog.trips(False, True) or watchdog.brakes for _ in range(19))
    assert not watchdog.trips(False, True)
    assert watchdog.brakes
    assert cycles_until_trip(watchdog) == SHARED.ended - 20
    watchdog.trips(True, True)
    assert not watchdog.brakes


def test_cycles_without_time_to_answer_do_not_count():
    watchdog = CommandWatchdog(PUBLISHED)
    assert cycles_until_trip(watchdog, counted=False, most=1000) is None
    assert watchdog.success_rate == 1.0
    assert cycles_until_trip(watchdog) == 20


def test_the_success_rate_is_that_of_the_last_hundred():
    watchdog = CommandWatchdog(PUBLISHED)
    assert watchdog.success_rate == 1.0
    for number in range(400):
        watchdog.trips(number % 4 != 0, True)
    assert watchdog.success_rate == 0.75
    watchdog.begin()
    assert watchdog.success_rate == 1.0


def test_a_new_motion_begins_the_count_anew():
    watchdog = CommandWatchdog(PUBLISHED)
    assert not any(watchdog.trips(False, True) for _ in range(19))
    watchdog.begin()
    assert cycles_until_trip(watchdog) == 20
