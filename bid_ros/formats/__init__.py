"""Data sets in the formats of others: readers that stream, writers that resume, and what each format cannot hold."""

from bid_ros.formats.base import FORMATS, Column, Contents, DataEpisode, Format, Options, Source, Writer, open_source
from bid_ros.formats.convert import Conversion, convert
from bid_ros.formats.loading import build_dataset, chosen, load_dataset
from bid_ros.formats.mapping import mapped

__all__ = [
    "FORMATS",
    "Column",
    "Contents",
    "Conversion",
    "DataEpisode",
    "Format",
    "Options",
    "Source",
    "Writer",
    "build_dataset",
    "chosen",
    "convert",
    "load_dataset",
    "mapped",
    "open_source",
]
