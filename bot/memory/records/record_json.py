"""Write records as JSON by their types, and read them back. Pure.

Rule 1: a field stands under its own name, or the one given here; what is empty anyway is left out.
Rule 2: a record with a malformed field is none, whatever a tape may hold. A field that is missing has
    its default, a time 1970; of a list, items of another type are left out.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cached_property, partial
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from bot.core.clock import format_time
from bot.core.reasons import parse_reason, reason_json

T = TypeVar("T")
_Convert = Callable[[Any], Any]

_BEGINNING = datetime.fromtimestamp(0, UTC)
_FIRST_YEAR, _LAST_YEAR = 2, 9_998
"""Accepted years, so that time zones and lifetimes can be added without overflow."""

_LARGEST = 1e300

_CODECS: dict[Any, RecordJson[Any]] = {}


class _MalformedError(Exception):
    """A value is not of its field's type."""


class RecordJson(Generic[T]):
    """The JSON of one kind of records.

    Args:
        kind: The dataclass.
        without: Fields that are not written; when read, they are None if they have no default.
        check: Returns a record that was read within its limits, or None if it cannot be.
        keys: Names in JSON by those of the fields, where they differ.
    """

    def __init__(
        self,
        kind: type[T],
        *,
        without: Collection[str] = (),
        check: Callable[[T], T | None] | None = None,
        **keys: str,
    ) -> None:
        self._kind = kind
        self._without = without
        self._check = check
        self._keys = keys
        _CODECS[kind] = self

    @cached_property
    def _fields(self) -> list[tuple[str, str, _Convert, _Convert, Any]]:
        """Name, key, reader, writer and default of each field."""
        hints = get_type_hints(self._kind)
        return [
            (
                one.name,
                self._keys.get(one.name, one.name),
                *_converters(hints[one.name]),
                _default(one, hints[one.name]),
            )
            for one in fields(self._kind)  # type: ignore[arg-type]
            if one.name not in self._without
        ]

    @cached_property
    def _absent(self) -> dict[str, None]:
        absent = [one for one in fields(self._kind) if one.name in self._without]  # type: ignore[arg-type]
        return {
            one.name: None for one in absent if (one.default, one.default_factory) == (MISSING,) * 2
        }

    def write(self, record: T) -> dict[str, Any]:
        """Return a record as JSON."""
        return {
            key: write(value)
            for name, key, _, write, default in self._fields
            if (value := getattr(record, name)) or value != _made(default)
        }

    def read(self, record: object, **known: Any) -> T | None:
        """Return the record in some JSON; None if it is malformed.

        Args:
            record: The JSON.
            known: Values of fields that it does not have.
        """
        if not isinstance(record, dict):
            return None
        found = {**self._absent, **known}
        for name, key, read, _, default in self._fields:
            if key in record:
                try:
                    found[name] = read(record[key])
                except _MalformedError:
                    return None
                continue
            if name not in found:
                if default is MISSING:
                    return None
                found[name] = _made(default)
        made = self._kind(**found)
        return made if self._check is None else self._check(made)

    def read_list(self, records: object, **known: Any) -> list[T]:
        """Return the records in a JSON list that are well-formed; see ``read``."""
        listed = records if isinstance(records, list) else []
        found = (self.read(one, **known) for one in listed)
        return [one for one in found if one is not None]


def parse_utc_time(value: object) -> datetime | None:
    """Parse an ISO 8601 time, as UTC if it has no zone; None if invalid or out of range."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    if moment is None or not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _made(default: Any) -> Any:
    return default() if callable(default) else default


def _default(one: Field[Any], hint: Any) -> Any:
    if one.default_factory is not MISSING:
        return one.default_factory
    return _BEGINNING if one.default is MISSING and hint is datetime else one.default


def _converters(hint: Any) -> tuple[_Convert, _Convert]:
    """Return what reads and what writes values of a type."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin is Literal:
        return partial(_one_of, inner), _same
    if origin in (types.UnionType, Union) and inner[-1] is type(None):
        read, write = _converters(inner[0])
        return partial(_or_none, read), partial(_or_none, write)
    if origin is list or (origin is tuple and inner[-1] is Ellipsis):
        read, write = _converters(inner[0])
        return partial(_items, read, origin), partial(_written, write)
    if origin is tuple:
        readers, writers = zip(*map(_converters, inner), strict=True)
        return partial(_pair, readers), partial(_written_pair, writers)
    if origin is dict:
        read, write = _converters(inner[1])
        return partial(_pairs, read), partial(_written_pairs, write)
    if isinstance(hint, type) and issubclass(hint, Enum):
        known = {one.name.lower(): one for one in hint}
        return partial(_named, known), lambda value: value.name.lower()
    if is_dataclass(hint):
        return partial(_nested, hint), _CODECS[hint].write
    return partial(_exactly, hint), _same


def _same(value: Any) -> Any:
    return value


def _exactly(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise _MalformedError
    return value


def _time(value: Any) -> datetime:
    if (moment := parse_utc_time(value)) is None:
        raise _MalformedError
    return moment


def _text(value: Any) -> str:
    # A text that the program wrote may be a code with values.
    text = parse_reason(value) if isinstance(value, dict) else value
    if not isinstance(text, str):
        raise _MalformedError
    return text


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not -_LARGEST < value < _LARGEST:
        raise _MalformedError
    return float(value)


def _one_of(known: tuple[Any, ...], value: Any) -> Any:
    # A Literal's own object compares faster later on.
    for one in known:
        if one == value:
            return one
    raise _MalformedError


def _named(known: dict[str, Any], value: Any) -> Any:
    if not isinstance(value, str) or value not in known:
        raise _MalformedError
    return known[value]


def _or_none(convert: _Convert, value: Any) -> Any:
    return None if value is None else convert(value)


def _items(read: _Convert, kind: type, value: Any) -> Any:
    found = []
    for one in _exactly(list, value):
        try:
            found.append(read(one))
        except _MalformedError:
            continue
    return kind(found)


def _written(write: _Convert, value: Any) -> list[Any]:
    return [write(one) for one in value]


def _written_pairs(write: _Convert, value: Any) -> dict[str, Any]:
    return {name: write(one) for name, one in value.items()}


def _pair(readers: tuple[_Convert, ...], value: Any) -> tuple[Any, ...]:
    if len(_exactly(list, value)) != len(readers):
        raise _MalformedError
    return tuple(read(one) for read, one in zip(readers, value, strict=True))


def _written_pair(writers: tuple[_Convert, ...], value: Any) -> list[Any]:
    return [write(one) for write, one in zip(writers, value, strict=True)]


def _pairs(read: _Convert, value: Any) -> dict[str, Any]:
    return {name: read(one) for name, one in _exactly(dict, value).items()}


def _nested(kind: Any, value: Any) -> Any:
    if (found := _CODECS[kind].read(value)) is None:
        raise _MalformedError
    return found


_PLAIN: dict[Any, tuple[_Convert, _Convert]] = {
    Any: (_same, _same),
    datetime: (_time, format_time),
    str: (_text, reason_json),
    float: (_number, _same),
}
"""What reads and what writes values of plain types."""
