"""Data sets in the formats of others: readers that stream, writers that resume, and what each format cannot hold."""

from bid_ros.formats.base import Column, Contents, DataEpisode, Format, Options, Source, Writer
from bid_ros.formats.convert import Conversion, convert
from bid_ros.formats.loading import chosen, load_dataset
from bid_ros.formats.mapping import mapped
from bid_ros.formats.registry import FORMATS, open_source

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
    "chosen",
    "convert",
    "load_dataset",
    "mapped",
    "open_source",
]
