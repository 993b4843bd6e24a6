"""``bid view``: the scene of a running system or of a recording, in Rerun."""

import argparse
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bid_ros.commands.arguments import SYSTEM_HELP
from bid_ros.commands.robot import NAMESPACE
from bid_ros.commands.tasks import recorded, task_file_of_bags
from bid_ros.core.errors import BidError, CameraError
from bid_ros.core.extras import extra
from bid_ros.core.task import Task, load_task
from bid_ros.core.topics import MEASURED_LIMITS, MEASURES, check_namespace
from bid_ros.system.folder import FILE, file_beside, find_system, shipped_systems

if TYPE_CHECKING:
    from bid_ros.views.rerun_view import RerunView

WEB_PORT: Final = 9090


def add_parser(verbs: Any) -> None:
    """Add ``view``."""
    parser = verbs.add_parser(
        "view",
        help="watch a running system, or a recording, in Rerun",
        description="Show the candidates of each decision by their losses, the decision, the motion, the workspace, "
        "the state of safety, and the cameras: live, or from a bag. It needs the extra `view`.",
        epilog="Without --web and --save it opens Rerun's window. A live view ends with Ctrl-C; nothing waits for it.",
    )
    parser.add_argument("source", help=f"a running system: {SYSTEM_HELP}; or a recording: a bag, a run, or BAG:N")
    parser.add_argument("--save", default="", metavar="FILE.rrd", help="write a file instead, which `rerun` opens")
    parser.add_argument("--web", action="store_true", help="show it to browsers on this computer")
    parser.add_argument(
        "--port",
        type=int,
        default=WEB_PORT,
        help=f"for --web: this port and the next one are used (default {WEB_PORT})",
    )
    parser.add_argument("--namespace", default="", help=NAMESPACE)
    parser.add_argument("--robot", action="store_true", help="the running system is a robot, not its twin")
    parser.add_argument("--task", default="", help="task file of the recording (default: the recorded run's)")
    parser.add_argument("--remap", nargs="*", default=[], help="TOPIC:=/RECORDED/NAME, for bags of other recorders")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show a system or a recording."""
    if options.save and options.web:
        raise BidError("--save and --web are given; valid is one of them")
    if not 1024 <= options.port <= 65534:
        raise BidError(f"--port is {options.port}; valid is 1024 to 65534")
    live = is_system(options.source)
    with _sink(options, live) as recording:
        (_live if live else _bag)(options, recording)
    return 0


def is_system(source: str) -> bool:
    """Whether a system is meant, not a recording. Raises BidError if it is neither."""
    if (Path(source) / FILE).is_file() or (source in shipped_systems() and not Path(source).exists()):
        return True
    from bid_ros.curation.catalog import split_name

    if split_name(source)[0].exists():
        return False
    shipped = ", ".join(shipped_systems())
    raise BidError(f"'{source}' is neither a system nor a recording; valid are a path, and the shipped {shipped}")


@contextmanager
def _sink(options: argparse.Namespace, live: bool) -> Iterator[Any]:
    """Give the recording that the options ask for. A page of a recording stays until Ctrl-C."""
    from bid_ros.views import rerun_sink

    if options.save:
        with rerun_sink.into_file(Path(options.save)) as recording:
            yield recording
        print(f"wrote {options.save}; look at it with: rerun {options.save}", file=sys.stderr)
    elif options.web:
        with rerun_sink.into_browsers(options.port) as (recording, address):
            print(f"open {address}", file=sys.stderr, flush=True)
            yield recording
            if not live:
                recording.flush()
                print("Ctrl-C ends the page", file=sys.stderr, flush=True)
                with suppress(KeyboardInterrupt):
                    signal.pause()
    else:
        with rerun_sink.into_window() as recording:
            yield recording


def _bag(options: argparse.Namespace, recording: Any) -> None:
    from bid_ros.curation.catalog import chosen, one_bag, split_name
    from bid_ros.recording.bag_topics import read_remapped
    from bid_ros.recording.reader import BagReader

    path, number = split_name(options.source)
    bag = one_bag(path)
    file = Path(task_file_of_bags(options.task, [bag]))
    twin = recorded(bag).get("hardware", "twin") == "twin"
    view = _view(recording, load_task(file), partial(file_beside, file), twin)
    with BagReader(bag, read_remapped(options.remap)) as reader:
        first, last = reader.span_ns
        if number is not None:
            (episode,) = chosen(reader, number)
            first, last = episode.begin_ns, episode.end_ns
        view.begin(first)
        count = 0
        for item in reader.messages(view.topics, first, last + 1):
            view.add(item.topic, item.stamp_ns, item.message)
            count += 1
    print(f"showed {count} messages, {(last - first) / 1e9:.1f} s", file=sys.stderr)


def _live(options: argparse.Namespace, recording: Any) -> None:
    import time

    from bid_ros.nodes.following import follow
    from bid_ros.tasks.topics import system_topics

    system, namespace = find_system(options.source), check_namespace(options.namespace)
    view = _view(recording, system.task, system.file, not options.robot)
    known = {**system_topics(system.task), MEASURED_LIMITS: MEASURES}
    view.begin(time.time_ns())
    print("watching; Ctrl-C ends it", file=sys.stderr, flush=True)
    with suppress(KeyboardInterrupt):
        follow({name: known[name] for name in view.topics}, _careful(view.add), namespace)


def _careful(add: Callable[[str, int, Any], None]) -> Callable[[str, int, Any], None]:
    """Return ``add`` with one line, the first time, for each topic that has a message that cannot be shown."""
    said: set[str] = set()

    def careful(topic: str, stamp_ns: int, message: Any) -> None:
        try:
            add(topic, stamp_ns, message)
        except CameraError as error:
            if topic not in said:
                said.add(topic)
                print(f"{topic}: {error}", file=sys.stderr, flush=True)

    return careful


def _view(recording: Any, task: Task, beside: Callable[[str], Path], twin: bool) -> "RerunView":
    """Return the view of a task; ``beside`` finds a file of its system. Without a camera file it has no cameras."""
    from bid_ros.cameras.config import load_cameras
    from bid_ros.views.overlay import tool_places
    from bid_ros.views.rerun_view import RerunView

    file = beside("cameras.yaml")
    cameras = load_cameras(file, [camera.name for camera in task.cameras], twin) if file.is_file() else {}
    return RerunView(recording, task, cameras, tool_places(task, beside("robot.yaml"), twin), _outline(task))


def _outline(task: Any) -> Any:
    """Return the outline of a task's robot; None, and a line, where the twin's packages or its outline are missing."""
    try:
        with extra("twin", "the outline of the robot"):
            from bid_ros.views.outline import outline_of
        return outline_of(task)
    except BidError as error:
        print(f"without the robot: {error}", file=sys.stderr)
        return None
