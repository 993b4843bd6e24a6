"""Configuration files: pydantic reads YAML into dataclasses. Each error is one sentence.

A dataclass marked with :func:`settings` declares types, ranges (``Annotated[float, Field(ge=0, le=1)]``) and defaults
once. The declaration serves four uses: reading the file, checking a value that is built in Python, the sentence for a
bad value (:mod:`bid_ros.core.sentence`), and the JSON schema for editors (:mod:`bid_ros.core.schema`).
"""

import json
import math
from collections.abc import Callable
from dataclasses import field, fields
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar, dataclass_transform

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, WrapValidator
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic.json_schema import SkipJsonSchema, WithJsonSchema

from bid_ros.core.errors import BidError
from bid_ros.core.schema import adapter_of, json_schema
from bid_ros.core.sentence import described, label_of

Kind = TypeVar("Kind")
CONFIG: Final = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
TWIN: Final = "twin"


def list_of(count: int, kind: str = "number", **limits: float) -> WithJsonSchema:
    """Return the annotation of a tuple of ``count`` equal values, in a form that old editors understand.

    ``limits`` of a value, such as ``maximum``, are said; they are held by the type of the tuple.
    """
    return WithJsonSchema({"type": "array", "items": {"type": kind, **limits}, "minItems": count, "maxItems": count})


def _unit(quaternion: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    if abs(math.hypot(*quaternion) - 1) > 1e-3:
        raise ValueError("a unit quaternion xyzw")
    return quaternion


def _as_written(value: Any, check: Callable[[Any], Any]) -> Any:
    check(value)
    return value


Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, le=1)]
Vector3 = Annotated[tuple[float, float, float], list_of(3)]
Angle = Annotated[float, Field(ge=-12.6, le=12.6)]
"""Of a joint, rad: what is beyond two turns is in degrees."""
Reach = Annotated[float, Field(ge=-1, le=1)]
ToolPlace = Annotated[tuple[Reach, Reach, Reach], list_of(3, minimum=-1, maximum=1)]
"""Of a tool or a load, m: what is farther from its flange is in another unit."""
Quaternion = Annotated[tuple[float, float, float, float], AfterValidator(_unit), list_of(4)]
AS_WRITTEN: Final = WrapValidator(_as_written)
"""Of a number that goes into a hash: a whole one stays whole, so ``10`` and ``10.0`` are told apart as in the file."""
BY_CALLER: Final[Any] = SkipJsonSchema()  # type: ignore[type-arg]
"""Of a field that the program sets and the file may not."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def settings(kind: Any = None, *, error: type[BidError] = BidError) -> Any:
    """Make a class a frozen dataclass that a configuration file, or a part of one, is read into.

    Building it in Python checks the values in the same way as reading a file.

    Args:
        kind: the class. Its ``__post_init__`` checks what depends on several fields.
        error: class of the errors.
    """
    if kind is None:
        return partial(settings, error=error)
    made: Any = pydantic_dataclass(frozen=True, config=CONFIG)(kind)
    build = made.__init__

    @wraps(build)
    def checked(self: Any, *values: Any, **named: Any) -> None:
        try:
            build(self, *values, **named)
        except ValidationError as problem:
            content = dict(zip((item.name for item in fields(made)), values, strict=False)) | named
            raise error(f"{label_of(made)}: {described(made, problem, content)}") from problem

    made.__init__, made.settings_error = checked, error
    return made


def load_settings(kind: type[Kind], path: str | Path, what: str) -> Kind:
    """Read a YAML file into ``kind``.

    Args:
        kind: class marked with :func:`settings`.
        path: path of the file.
        what: what the file is, for example ``task file``. The sentence of an error begins with it.

    Raises:
        BidError: (the subclass that ``kind`` names) the file is missing or not YAML, or a field is unknown, missing or
            impossible.
    """
    return parse_settings(kind, read_yaml(path, what, _error_of(kind)), f"{what} {path}")


def load_yaml(text: str | bytes) -> Any:
    """Return what a YAML text holds, as ``yaml.safe_load``, but with libyaml's parser, which is faster.

    Raises:
        yaml.YAMLError: it is not YAML, or a key stands twice in a mapping.
    """
    from bid_ros.core.unique_keys import UniqueKeyLoader  # settings that no file says, as a decoder's, do without YAML

    loader = UniqueKeyLoader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def read_yaml(path: str | Path, what: str, error: type[BidError] = BidError) -> Any:
    """Return the content of a YAML file. Raises ``error`` if it is missing or not YAML."""
    from yaml import YAMLError

    try:
        return load_yaml(Path(path).read_text())
    except FileNotFoundError as problem:
        raise error(f"{what} {path} does not exist") from problem
    except OSError as problem:
        raise error(f"{what} {path} cannot be read: {problem.strerror}") from problem
    except (YAMLError, UnicodeDecodeError) as problem:
        raise error(f"{what} {path} is not valid YAML: {' '.join(str(problem).split())}") from problem


def parse_settings(kind: type[Kind], content: object, where: str) -> Kind:
    """Build ``kind`` from the content of a YAML file; ``where`` begins an error. Raises as :func:`load_settings`."""
    try:
        # Strict JSON mode turns a list into a tuple, but no text into a number.
        text = json.dumps(content, default=str)
    except (TypeError, ValueError) as problem:  # YAML knows dates as names, and lists that hold themselves
        raise _error_of(kind)(f"{where} holds what no configuration does: {problem}") from problem
    try:
        built: Kind = adapter_of(kind).validate_json(text)
        return built
    except ValidationError as problem:
        raise _error_of(kind)(f"{where}: {described(kind, problem, json.loads(text))}") from problem
    except BidError as problem:
        raise _error_of(kind)(f"{where}: {problem}") from problem


def parse_with_twin(kind: type[Kind], content: object, where: str, in_twin: bool, **given: Any) -> Kind:
    """Build ``kind`` from a mapping whose section ``twin`` replaces fields in the twin.

    Both variants are always checked. So a mistake is found before the other one is used.

    Args:
        kind: class marked with :func:`settings`.
        content: content of the YAML file.
        where: begins the sentence of an error.
        in_twin: whether the section applies.
        given: fields that the program sets, marked ``BY_CALLER``.

    Raises:
        BidError: as :func:`load_settings`.
    """
    if not isinstance(content, dict):
        return parse_settings(kind, content, where)  # which says what is valid
    own = {name: value for name, value in content.items() if name != TWIN}
    section = content.get(TWIN, {})
    if not isinstance(section, dict):
        raise _error_of(kind)(f"{where}: twin is {section!r}; valid is a mapping of fields")
    for name in given.keys() & (own | section).keys():
        valid = ", ".join(json_schema(kind)["properties"])
        raise _error_of(kind)(f"{where}: unknown field '{name}'; valid are {valid}")
    variants = [parse_settings(kind, {**own, **over, **given}, where) for over in ({}, section)]
    return variants[in_twin]


def _error_of(kind: type[Any]) -> type[BidError]:
    error: type[BidError] = getattr(kind, "settings_error", BidError)
    return error
