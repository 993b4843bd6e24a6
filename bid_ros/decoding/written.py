"""How a decoder is written in one text: its name, then its settings, as in ``bid:variant=paper,terms=backward``.

The same text stands on the command line, in ``system.yaml``, in the policy node's parameter, in recorded decisions and
in result files. Settings that it does not say keep the values that they have elsewhere.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from bid_ros.core.errors import DecodingError

_KINDS: Final[Mapping[str, Callable[[str], Any]]] = {
    "variant": str,
    "terms": str,
    "metric": str,
    "trim": str,
    "mode_size": int,
    "decay": float,
    "agreement": float,
    "ema_weight": float,
    "ensemble": float,
    "warm_start": str,
    "memory": str,
}
OF_ALL: Final = ("memory",)  # settings that every decoder reads
BID_SETTINGS: Final = ("variant", "terms", "metric", "trim", "mode_size", "decay", "agreement")
READ_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "vanilla": (),
    "ema": ("ema_weight", "ensemble"),
    "warmstart": ("warm_start",),
    "rtc": (),
    "delay": (),
    "lead": (),
    "keystone": ("agreement",),
    "bid": BID_SETTINGS,
}
"""What each part of a decoder's name reads: ``bid+ema`` reads what ``bid`` and ``ema`` do."""
_FORMER: Final[Mapping[str, str]] = {
    **{f"bid-{terms}": f"bid:terms={terms}" for terms in ("backward", "positive", "negative", "contrast")},
    "bid-paper": "bid:variant=paper",
    "bid-paper-nearest": "bid:variant=paper,trim=nearest",
    "bid-reference-v1": "bid:variant=reference_v1",
    "bid-reference-v2": "bid:variant=reference_v2",
    "bid-corrected": "bid:variant=corrected",
    "warmstart-clean": "warmstart:warm_start=clean",
    "receding": "vanilla",
}


def read_decoder(text: str) -> tuple[str, dict[str, Any]]:
    """Return name and settings, fields of :class:`bid_ros.decoding.DecoderConfig`. Whether they exist: the registry.

    Raises:
        DecodingError: the name is a former one, the decoder has no such setting, or it is given twice or not readable.
    """
    name, colon, rest = text.partition(":")
    if name in _FORMER:
        raise DecodingError(f"decoder '{name}' is now written '{_FORMER[name]}'")
    settings: dict[str, Any] = {}
    for item in rest.split(",") if colon else ():
        key, equals, value = item.partition("=")
        valid = settings_of(name)
        if key not in valid or not equals or key in settings:
            known = f"valid are {', '.join(valid)}, each once, as in SETTING=VALUE"
            raise DecodingError(f"decoder '{text}' has '{item}' as a setting of {name}; {known}")
        settings[key] = _value(text, key, value)
    return name, settings


def write_decoder(name: str, settings: Mapping[str, Any]) -> str:
    """Return the text of a decoder, its settings always in the same order."""
    said = ",".join(f"{key}={settings[key]}" for key in _KINDS if key in settings)
    return f"{name}:{said}" if said else name


def current_decoder(recorded: str) -> str:
    """Return the text of today for what a bag or a result file says, which may be a former name."""
    return _FORMER.get(recorded, recorded)


def split_decoders(text: str) -> tuple[str, ...]:
    """Return the decoders of a comma list. A comma before ``SETTING=`` belongs to the decoder before it."""
    return tuple(part.strip() for part in re.split(r",(?!\s*\w+=)", text))


def settings_of(name: str) -> tuple[str, ...]:
    """Return the settings that the text of a decoder may say. One of another package may read all of them."""
    read = {setting for part in name.split("+") for setting in (*READ_BY.get(part, _KINDS), *OF_ALL)}
    return tuple(setting for setting in _KINDS if setting in read)


def _value(text: str, key: str, value: str) -> Any:
    try:
        return _KINDS[key](value)
    except ValueError as error:
        kind = "a whole number" if _KINDS[key] is int else "a number"
        raise DecodingError(f"decoder '{text}' has {key} '{value}'; valid is {kind}") from error
