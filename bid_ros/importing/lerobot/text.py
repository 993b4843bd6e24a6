"""The text that a policy is told, as CLIP's tokens.

Byte pair encoding: Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units", ACL 2016, Section
3.2, on the bytes of the text, as CLIP's own files describe it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from unicodedata import normalize

from bid_ros.core.errors import BidError
from bid_ros.importing.lerobot.checkpoint import CONFIG, read_json

TOKENIZER: Final = "tokenizer.json"
BEGIN, END = "<|startoftext|>", "<|endoftext|>"
WORD_END: Final = "</w>"
WORDS: Final = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d|[^\W\d_]+|\d|[^\s\w]+|_+")
HEAD: Final = 64  # numbers a head of all published CLIPs


@dataclass(frozen=True, eq=False)
class Clip:
    """What a policy's weights do not say about the CLIP inside.

    Attributes:
        path: folder with its files, for errors.
        config: content of ``config.json``, empty where there is none.
        vocabulary: token by piece.
        merges: rank of each pair of pieces that is put together.
    """

    path: Path
    config: Mapping[str, Any]
    vocabulary: Mapping[str, int]
    merges: Mapping[tuple[str, str], int]

    def heads(self, size: int, part: str) -> int:
        """Return the number of attention heads of ``vision_config`` or ``text_config``.

        Raises:
            BidError: the configuration says something impossible, or the activation is not the quick GELU.
        """
        section = self.config.get(part, {})
        activation = section.get("hidden_act", "quick_gelu")
        if activation != "quick_gelu":
            raise BidError(f"{self.path / CONFIG}: {part}.hidden_act is '{activation}'; valid is quick_gelu")
        heads = section.get("num_attention_heads", size // HEAD)
        if not isinstance(heads, int) or heads < 1 or size % heads:
            where = f"{self.path / CONFIG}: {part}"
            raise BidError(f"{where}.num_attention_heads is {heads!r}; valid is a divisor of {size}")
        return heads


def read_clip(named: str, folder: Path) -> Clip:
    """Return the description of the CLIP in a folder: ``tokenizer.json`` and, where it has other heads than usual,
    ``config.json``.

    Args:
        named: the folder; empty: that of the policy.
        folder: of the policy.

    Raises:
        BidError: there is no tokenizer, or it is not CLIP's.
    """
    path = Path(named) if named else folder
    if not (path / TOKENIZER).is_file():
        raise BidError(
            f"{path} has no {TOKENIZER}, which the text for the policy needs; name a folder of the CLIP that it was "
            "trained with by --clip"
        )
    content = read_json(path / TOKENIZER)
    model = content.get("model", {})
    vocabulary, merges = model.get("vocab"), model.get("merges")
    good = isinstance(vocabulary, dict) and isinstance(merges, list) and {BEGIN, END} <= vocabulary.keys()
    if not good or model.get("end_of_word_suffix") != WORD_END:
        raise BidError(f"{path / TOKENIZER} is not CLIP's; valid is a byte pair encoding with {BEGIN} and {END}")
    pairs = [tuple(item.split(" ")) if isinstance(item, str) else tuple(item) for item in merges]
    ranks = {(pair[0], pair[1]): rank for rank, pair in enumerate(pairs)}
    config = read_json(path / CONFIG) if named and (path / CONFIG).is_file() else {}
    return Clip(path, config, vocabulary, ranks)


def encode_text(clip: Clip, text: str, length: int) -> list[int]:
    """Return the tokens of a text, with those of begin and end.

    Args:
        clip: whose tokens.
        text: any.
        length: most tokens. A longer text is cut, and still ends with the token of the end.

    Raises:
        BidError: the text is empty, or has a piece that the vocabulary lacks.
    """
    if not text.strip():
        raise BidError("the policy is told a text, but there is none; give it with --text")
    plain = re.sub(r"\s+", " ", normalize("NFC", text)).strip().lower()
    tokens = []
    for word in WORDS.findall(plain):
        for piece in _merged(clip, "".join(_letters()[byte] for byte in word.encode())):
            if piece not in clip.vocabulary:
                raise BidError(f"{clip.path / TOKENIZER} has no token for '{piece}' of the text '{text}'")
            tokens.append(clip.vocabulary[piece])
    return [clip.vocabulary[BEGIN], *tokens[: length - 2], clip.vocabulary[END]]


def _merged(clip: Clip, word: str) -> list[str]:
    """Put pairs of pieces together, that of the lowest rank first, until no pair is left."""
    pieces = [*word[:-1], word[-1] + WORD_END]
    while len(pieces) > 1:
        ranked = [(clip.merges.get(pair, len(clip.merges)), pair) for pair in pairwise(pieces)]
        rank, best = min(ranked)
        if rank == len(clip.merges):
            break
        joined: list[str] = []
        for piece in pieces:
            if joined and (joined[-1], piece) == best:
                joined[-1] += piece
            else:
                joined.append(piece)
        pieces = joined
    return pieces


@cache
def _letters() -> dict[int, str]:
    """Return the printable letter that stands for each byte: itself where it is one, else one from 256 on."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + index) for index, byte in enumerate(others)}
