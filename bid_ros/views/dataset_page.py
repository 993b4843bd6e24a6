"""One HTML page of a whole data set: table, filters, contact sheets, plots and faults. It needs no other file."""

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Final

from PIL import Image as PillowImage

from bid_ros.core.errors import BidError, RecordingError
from bid_ros.core.files import replace_text
from bid_ros.core.outcome import INFRASTRUCTURE
from bid_ros.core.task import Task
from bid_ros.core.topics import DECISION
from bid_ros.curation.catalog import BagEpisode, count_frames, episodes_of
from bid_ros.curation.listing import utc_time
from bid_ros.curation.track import Fault, read_track
from bid_ros.curation.validate import check_track, faults_of_bag, observed_topics
from bid_ros.episodes.comparison import wilson_interval
from bid_ros.recording.reader import BagReader
from bid_ros.views.contact_sheet import Picture, sheet_of
from bid_ros.views.episode_plot import plot_png

COLUMNS: Final = 7
TILE: Final = 104
PLOT: Final = ((5.4, 4.3), 100)  # inches, dots an inch
COLORS: Final = 48  # of a plot: its file is small then
TEMPLATE: Final = Path(__file__).with_name("dataset_page.html")


@dataclass(frozen=True)
class Card:
    """What the page shows of one episode, or of a bag that cannot be read.

    Attributes:
        name: what names it on the command line.
        recorded: the episode; None if the bag has none.
        frames: images of its first camera.
        faults: of the episode; those of the bag are on its first card.
        sheet: JPEG; empty without images.
        plot: PNG; empty without motion.
    """

    name: str
    recorded: BagEpisode | None
    frames: int
    faults: tuple[Fault, ...]
    sheet: bytes = b""
    plot: bytes = b""

    @property
    def errors(self) -> int:
        """Number of errors."""
        return sum(fault.severity == "error" for fault in self.faults)

    @property
    def outcome(self) -> str:
        """Outcome, for the filter: success, failure, infrastructure (it counts in no rate), or unknown."""
        episode = self.recorded.episode if self.recorded else None
        if episode is not None and episode.outcome_class == INFRASTRUCTURE:
            return INFRASTRUCTURE
        success = None if self.recorded is None else self.recorded.success
        return "unknown" if success is None else "success" if success else "failure"


def read_cards(bag: Path, task: Task | None, remapped: Mapping[str, str] | None = None) -> Iterator[Card]:
    """Yield a card for each episode of a bag. A bag that cannot be read gives one card that says why.

    Args:
        bag: path of the bag.
        task: its task; None: what needs one is not checked.
        remapped: recorded names, as BagReader takes them.
    """
    try:
        with BagReader(bag, remapped) as reader:
            of_task = None if task is None else task.with_frame_prefix(reader.frame_prefix)
            of_bag = tuple(faults_of_bag(reader, of_task))
            episodes = episodes_of(reader)
            for recorded, frames in zip(episodes, count_frames(reader, episodes), strict=True):
                yield _card(reader, recorded, frames, of_task, of_bag if not recorded.number else ())
            if not episodes:
                yield Card(str(bag), None, 0, of_bag)
    except BidError as problem:
        yield Card(str(bag), None, 0, (Fault("readable", "error", str(problem)),))


def _card(reader: BagReader, recorded: BagEpisode, frames: int, task: Task | None, faults: tuple[Fault, ...]) -> Card:
    track = read_track(reader, recorded, {**observed_topics(task), DECISION: ""})
    plot = b""
    if len(track.tool) or track.arm is not None:
        plot = _small(plot_png([track], None if task is None else task.limits, *PLOT, title=False))
    try:
        sheet = _jpeg(sheet_of(reader, recorded, COLUMNS, TILE))
    except RecordingError:
        sheet = b""  # no camera
    return Card(recorded.name, recorded, frames, (*faults, *check_track(track, task)), sheet, plot)


def _small(png: bytes) -> bytes:
    buffer = io.BytesIO()
    PillowImage.open(io.BytesIO(png)).convert("RGB").quantize(COLORS).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _jpeg(picture: Picture) -> bytes:
    buffer = io.BytesIO()
    PillowImage.fromarray(picture).save(buffer, "JPEG", quality=82, optimize=True)
    return buffer.getvalue()


def write_page(cards: Sequence[Card], folder: Path, title: str) -> Path:
    """Write ``index.html`` into a folder, and return its path. Every picture is inside."""
    good = sum(card.outcome == "success" for card in cards)
    judged = sum(card.outcome in ("success", "failure") for card in cards)
    low, high = wilson_interval(good, judged) if judged else (0.0, 1.0)
    facts = {
        "episodes": str(sum(card.recorded is not None for card in cards)),
        "success": f"{good} of {judged}" + (f" ({low:.0%} to {high:.0%})" if judged else ""),
        "minutes": f"{sum(card.recorded.duration_s for card in cards if card.recorded) / 60:.1f}",
        "frames": str(sum(card.frames for card in cards)),
        "errors": str(sum(card.errors for card in cards)),
        "warnings": str(sum(len(card.faults) - card.errors for card in cards)),
    }
    labels = sorted({card.recorded.label for card in cards if card.recorded and card.recorded.label})
    text = Template(TEMPLATE.read_text()).substitute(
        title=escape(title),
        facts="".join(f"<div><b>{escape(value)}</b><span>{name}</span></div>" for name, value in facts.items()),
        labels="".join(f"<option>{escape(label)}</option>" for label in labels),
        rows="\n".join(_row(number, card) for number, card in enumerate(cards)),
        cards="\n".join(_article(number, card) for number, card in enumerate(cards)),
    )
    page = folder / "index.html"
    replace_text(page, text)
    return page


def _data(number: int, card: Card) -> str:
    """Return the attributes by which the filters find a row and its card."""
    label = card.recorded.label if card.recorded else ""
    kind = "error" if card.errors else "warning" if card.faults else "none"
    words = " ".join([card.name, label, card.recorded.outcome if card.recorded else "", *(f.text for f in card.faults)])
    return (
        f'data-n="{number}" data-outcome="{card.outcome}" data-label="{escape(label)}" data-faults="{kind}" '
        f'data-words="{escape(words.lower())}"'
    )


def _row(number: int, card: Card) -> str:
    recorded = card.recorded
    seed = recorded.episode.seed if recorded and recorded.episode else ""
    cells = [
        f'<a href="#e{number}">{escape(card.name)}</a>',
        escape(recorded.label) if recorded else "",
        str(seed),
        utc_time(recorded.begin_ns) if recorded else "",
        f"{recorded.duration_s:.1f}" if recorded else "",
        str(card.frames),
        _pill(card),
        str(card.errors or ""),
        str(len(card.faults) - card.errors or ""),
    ]
    return f"<tr {_data(number, card)}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _pill(card: Card) -> str:
    text = card.recorded.outcome if card.recorded else "not readable"
    return f'<span class="pill {card.outcome}">{escape(text)}</span>'


def _article(number: int, card: Card) -> str:
    recorded = card.recorded
    about = "" if recorded is None else f"{escape(recorded.label)} · {recorded.duration_s:.1f} s · {card.frames} frames"
    pictures = "".join(
        f'<img src="data:image/{kind};base64,{base64.b64encode(data).decode()}" alt="{what} of {escape(card.name)}">'
        for kind, data, what in (("jpeg", card.sheet, "contact sheet"), ("png", card.plot, "motion"))
        if data
    )
    faults = "".join(
        f'<li class="{fault.severity}"><b>{fault.severity}</b> {escape(fault.check)}: {escape(fault.text)}</li>'
        for fault in card.faults
    )
    return (
        f'<article id="e{number}" {_data(number, card)}>'
        f"<h2>{escape(card.name)} {_pill(card)}<small>{about}</small></h2>"
        f'<div class="pictures">{pictures}</div><ul>{faults}</ul></article>'
    )
