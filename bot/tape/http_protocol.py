"""Declare the tape server's calls, and how they are written: models, JSON, errors. Pure.

Rule 1: a call is a method, of ``TapeStore`` where it can be. Its signature is the model of what is asked and answered,
    for the server's routes, its OpenAPI document and the client alike.
Rule 2: what a tape holds travels exactly: big integers, -0.0, halves of surrogate pairs. So models take texts as they
    are, since pydantic's own ``str`` refuses a lone surrogate, and Python's JSON reads and writes them.
Rule 3: an append's key is stored in its last entry's meta, so that a restarted server knows what it has appended.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import datetime
from functools import cached_property
from inspect import cleandoc, signature
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, get_origin, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    InstanceOf,
    TypeAdapter,
    create_model,
)

from bot.core import errors
from bot.tape.codec import MAX_JSON_INTEGER
from bot.tape.entries import TapeEntry
from bot.tape.search import Hit, SearchQuery
from bot.tape.store import Anchor, Segment, TapeStore

TokenScope = Literal["read", "append", "admin"]
"""What a token allows; each scope includes those before it."""

MAX_PAGE_SIZE = 1_000
MAX_ENTRIES = 50_000
"""Most entries of one request."""
MAX_NAME = 4_096
"""Longest name of a tape or an anchor, in characters: percent-encoded, it must fit into an address."""

KEY_META = "key"
"""Meta key of an append's last entry that holds the append's key."""
SSE_MEDIA_TYPE = "text/event-stream"
BUSY = "busy"

Key = Annotated[str, Field(min_length=1, max_length=128)]
PageSize = Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE)]


class _Model(BaseModel):
    # Built when first used: the start of a bot needs none.
    model_config = ConfigDict(extra="forbid", from_attributes=True, defer_build=True)


def _hints(of: Any) -> dict[str, Any]:
    """Return the types that a function or a dataclass names, as they are validated here."""
    hints = get_type_hints(of, localns=_TYPES, include_extras=True)
    limit = Field(max_length=MAX_ENTRIES)
    return {
        name: Annotated[hint, limit] if get_origin(hint) is Sequence else hint
        for name, hint in hints.items()
    }


def _held(of: type, **fields_of: Any) -> Any:
    """Return the type of a field that holds a dataclass; ``fields_of`` has fields that differ from it."""
    hints = _hints(of)
    for one in fields(of):
        default = ... if one.default is MISSING else one.default
        if one.default_factory is not MISSING:
            default = Field(default_factory=one.default_factory)
        fields_of.setdefault(one.name, (hints[one.name], default))
    about = cleandoc(of.__doc__ or "")
    model = create_model(of.__name__, __base__=_Model, __doc__=about, **fields_of)
    return Annotated[model, AfterValidator(lambda found: of(**found.__dict__))]


def _clamped(number: int) -> int:
    # No entry has an id beyond these bounds, so the nearest bound means the same.
    return max(0, min(number, MAX_JSON_INTEGER))


_BOUNDS = Field(json_schema_extra={"minimum": 0, "maximum": MAX_JSON_INTEGER})
_TYPES: dict[str, Any] = {
    "str": InstanceOf[str],
    "int": Annotated[int, AfterValidator(_clamped), _BOUNDS],
}
# Who appends gives no ids.
_TYPES["TapeEntry"] = _held(TapeEntry, id=(_TYPES["int"], 0))
for _kind in (Anchor, Segment, Hit, SearchQuery):
    _TYPES[_kind.__name__] = _held(_kind)


if TYPE_CHECKING:
    HeldEntries = list[TapeEntry]
else:
    HeldEntries = list[_TYPES["TapeEntry"]]


class Page(_Model):
    """A page of entries, the id of the newest one, and where the next page starts, if there is one."""

    entries: HeldEntries
    version: int
    next: int | None = None


class Statistics(_Model):
    """The store's counters, and the most bytes of a request."""

    store: dict[str, Any]
    most_bytes: int


class Problem(_Model):
    """Why a call was refused: a code for programs, what to do for people, for a conflict the tape's version."""

    error: str
    detail: str
    version: int | None = None


class ServerCalls(Protocol):
    """What the server has besides, or in place of, methods of ``TapeStore``."""

    async def append(
        self,
        tape: str,
        entries: Sequence[TapeEntry],
        expect: int | None = None,
        key: Key | None = None,
    ) -> list[TapeEntry]:
        """Append entries, all or none, if the tape has the version ``expect``; they are durable once it answers.

        A call that is repeated with the same ``key``, a random text, is done once and answered again.
        """

    async def read_page(
        self,
        tape: str,
        from_entry_id: int = 1,
        to_entry_id: int = MAX_JSON_INTEGER,
        limit: PageSize = 200,
        newest_first: bool = False,
    ) -> Page:
        """Return the entries of an id range, both ends included, a page at a time."""

    async def statistics(self) -> Statistics:
        """Return the store's counters, and the most bytes of a request."""

    async def health(self) -> str:
        """Return ``ok`` if the server can write, else 503 with what is wrong."""


@dataclass(frozen=True)
class Call:
    """A call of the server.

    Attributes:
        verb: ``GET`` has the arguments in the query string, ``POST`` as JSON in the body.
        path: Where it is.
        scope: What a token must allow; None if none is needed.
        method: Its signature and docstring are the call's.
    """

    verb: Literal["GET", "POST"]
    path: str
    scope: TokenScope | None
    method: Callable[..., Any]

    @property
    def name(self) -> str:
        """The method's name."""
        return self.method.__name__

    @cached_property
    def asks(self) -> type[BaseModel]:
        """The model of its arguments."""
        hints, [_, *given] = _hints(self.method), signature(self.method).parameters.values()
        arguments: dict[str, Any] = {
            one.name: (hints[one.name], ... if one.default is one.empty else one.default)
            for one in given
        }
        return create_model(self.name, __base__=_Model, __doc__=self.method.__doc__, **arguments)

    @cached_property
    def answers(self) -> TypeAdapter[Any]:
        """The type of its answer."""
        return TypeAdapter(_hints(self.method)["return"])


FOLLOW = Call("GET", "/v1/tapes/follow", "read", TapeStore.follow)
CALLS = {
    call.method: call
    for call in (
        Call("GET", "/v1/tapes", "read", TapeStore.list_tapes),
        Call("POST", "/v1/tapes", "append", TapeStore.create_tape),
        Call("GET", "/v1/tapes/title", "read", TapeStore.get_title),
        Call("GET", "/v1/tapes/version", "read", TapeStore.version),
        Call("GET", "/v1/tapes/segments", "read", TapeStore.segments),
        Call("GET", "/v1/tapes/entries", "read", ServerCalls.read_page),
        Call("POST", "/v1/tapes/entries", "append", ServerCalls.append),
        Call("POST", "/v1/tapes/archive", "append", TapeStore.archive),
        Call("POST", "/v1/tapes/erase", "admin", TapeStore.erase),
        Call("POST", "/v1/tapes/reset", "admin", TapeStore.reset),
        Call("POST", "/v1/tapes/fork", "append", TapeStore.fork),
        Call("GET", "/v1/tapes/anchors", "read", TapeStore.list_anchors),
        Call("POST", "/v1/tapes/anchors", "append", TapeStore.create_anchor),
        Call("GET", "/v1/tapes/anchors/last", "read", TapeStore.get_anchor),
        Call("GET", "/v1/tapes/anchors/target", "read", TapeStore.resolve_anchor),
        FOLLOW,
        Call("POST", "/v1/search", "read", TapeStore.search),
        Call("GET", "/v1/statistics", "read", ServerCalls.statistics),
        Call("GET", "/health", None, ServerCalls.health),
    )
}


def to_json(value: Any) -> bytes:
    """Return JSON that Python reads back exactly; models and dataclasses are objects.

    Raises:
        InvalidEntry: The value is not plain JSON.
    """
    try:
        text = _write(value)
        try:
            return text.encode()
        except UnicodeEncodeError:
            # The escape of a lone surrogate is plain ASCII, but two halves side by side would be read as one
            # character.
            escaped = _write(value, ensure_ascii=True).encode()
            exact = json.loads(escaped) == json.loads(text)
            return escaped if exact else text.encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.InvalidEntry(f"this cannot be written as JSON: {error}") from error


def _write(value: Any, *, ensure_ascii: bool = False) -> str:
    return json.dumps(
        value, ensure_ascii=ensure_ascii, separators=(",", ":"), allow_nan=False, default=_plain
    )


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.__dict__
    if isinstance(value, TapeEntry | Anchor | Segment | Hit | SearchQuery):
        return {name: getattr(value, name) for name in value.__slots__}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, frozenset):
        return list(value)
    raise TypeError(f"{type(value).__name__} is not plain JSON")


def from_json(raw: bytes) -> Any:
    """Parse JSON.

    Raises:
        ValueError: The text is not JSON, or nested too deeply.
    """
    try:
        return json.loads(raw.decode("utf-8", "surrogatepass"), parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


_ERRORS: tuple[tuple[type[errors.TapebotError], int, str], ...] = (
    (errors.TapeNotFound, 404, "not_found"),
    (errors.TapeExists, 409, "exists"),
    (errors.VersionConflict, 409, "conflict"),
    (errors.InvalidEntry, 400, "invalid_entry"),
    (errors.InvalidSearch, 400, "invalid_search"),
    (errors.TapeWriteError, 507, "storage"),
)


def http_error(error: errors.TapebotError) -> errors.HttpError:
    """Return the response to a store's error."""
    fields_of: dict[str, Any] = {}
    if isinstance(error, errors.VersionConflict):
        fields_of["version"] = error.actual
    for kind, status, code in _ERRORS:
        if isinstance(error, kind):
            return errors.HttpError(status, code, str(error), **fields_of)
    return errors.HttpError(503, "unavailable", str(error))


def tape_error(status: int, problem: Problem, asked: Mapping[str, Any]) -> errors.TapeError:
    """Return the error of a store that a response tells of."""
    if problem.error == "conflict" and problem.version is not None:
        expected = asked.get("expect") or 0
        return errors.VersionConflict(
            str(asked.get("tape")), expected=expected, actual=problem.version
        )
    for kind, _, code in _ERRORS:
        if code == problem.error != "conflict" and issubclass(kind, errors.TapeError):
            return kind(problem.detail)
    return (
        errors.TapeUnavailable(problem.detail)
        if status >= 500
        else errors.TapeRefused(problem.detail)
    )
