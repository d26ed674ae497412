"""Read request bodies within limits and validate them without changing a character.

Python's JSON parser reads them, since it keeps lone surrogates and big integers.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import anyio
from fastapi import Request
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
)

from bot.core.errors import HttpError
from bot.tape.entries import TapeEntry
from bot.tape.http_protocol import (
    MAX_APPEND_ENTRIES,
    MAX_JSON_INTEGER,
    MAX_NAME_LENGTH,
    from_json,
    parse_new_entries,
)
from bot.tape.search import (
    MAX_HITS,
    MAX_NEIGHBOURS,
    MAX_QUERY_LENGTH,
    MAX_SEMANTIC_MATCHES,
    SearchQuery,
)
from bot.tape.server.api import tape_server

_SECONDS = 60.0


def _text(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError("it is not text")  # noqa: TRY004 (what pydantic asks for)
    return value


def _name(value: Any) -> Any:
    if len(_text(value)) > MAX_NAME_LENGTH:
        raise ValueError(f"it is longer than {MAX_NAME_LENGTH} characters")
    return value


def _object(value: Any) -> Any:
    if not isinstance(value, dict):
        raise ValueError("it is not an object")  # noqa: TRY004 (what pydantic asks for)
    return value


# pydantic's own ``str`` rejects lone surrogates.
Text = Annotated[Any, AfterValidator(_text), WithJsonSchema({"type": "string"})]
Object = Annotated[Any, AfterValidator(_object), WithJsonSchema({"type": "object"})]
Name = Annotated[
    Any,
    AfterValidator(_name),
    WithJsonSchema({"type": "string", "maxLength": MAX_NAME_LENGTH}),
]
Id = Annotated[int, Field(ge=0, le=MAX_JSON_INTEGER)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class NewTape(_Body):
    """A tape to create."""

    title: Text | None = None
    replace: bool = False


class NewFork(_Body):
    """A fork to create."""

    new_tape: Name
    from_entry: Id | None = None
    from_anchor: Name | None = None
    to_entry: Id | None = None
    title: Text | None = None


class NewAnchor(_Body):
    """An anchor to create; without an entry it points at the newest one."""

    name: Name
    entry_id: Id | None = None
    state: Object | None = None


_Near = Annotated[tuple[Id, Annotated[float, Field(ge=0, le=10)]], Field(strict=False)]


class Search(_Body):
    """A search query; see ``SearchQuery``."""

    text: Annotated[Text, Field(json_schema_extra={"maxLength": MAX_QUERY_LENGTH})] = ""
    tapes: list[Name] | None = None
    kinds: (
        list[Literal["message", "tool_call", "tool_result", "anchor", "event", "system"]] | None
    ) = None
    senders: list[Text] | None = None
    problem: Text | None = None
    tags: list[Text] | None = None
    layer: Text | None = None
    names: list[Name] | None = None
    since: Annotated[AwareDatetime, Field(strict=False)] | None = None
    until: Annotated[AwareDatetime, Field(strict=False)] | None = None
    first: Id | None = None
    last: Id | None = None
    after_anchor: Name | None = None
    before_anchor: Name | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_HITS)] = 10
    neighbours: Annotated[int, Field(ge=0, le=MAX_NEIGHBOURS)] = 0
    near: Annotated[list[_Near], Field(max_length=MAX_SEMANTIC_MATCHES)] | None = None
    without_assistant: bool = False
    at_hand: bool = False
    quick: bool = False

    def query(self, tapes: tuple[str, ...] | None) -> SearchQuery:
        """Return the query for the store, restricted to these tapes."""
        values: dict[str, Any] = dict(self)
        for name in ("kinds", "senders", "names"):
            values[name] = None if values[name] is None else frozenset(values[name])
        values["tapes"], values["tags"] = tapes, frozenset(self.tags or ())
        values["near"] = None if self.near is None else dict(self.near)
        return SearchQuery(**values)


BODIES: tuple[type[BaseModel], ...] = (NewTape, NewFork, NewAnchor, Search)


_Model = TypeVar("_Model", bound=BaseModel)


async def read_body(request: Request) -> bytes:
    """Read a request's body.

    Raises:
        HttpError: The body is too large or arrives too slowly.
    """
    most = (await tape_server(request)).max_body_bytes
    too_large = HttpError(
        413, "too_large", f"a request takes at most {most} bytes; send less at once"
    )
    told = request.headers.get("content-length", "0")
    if told.isdecimal() and int(told) > most:
        raise too_large
    parts: list[bytes] = []
    size = 0
    with anyio.move_on_after(_SECONDS) as bounded:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise too_large
            parts.append(part)
    if bounded.cancelled_caught:
        raise HttpError(
            408, "too_slow", f"a request's body must come within {_SECONDS:.0f} seconds"
        )
    return b"".join(parts)


async def read_entries(request: Request) -> list[TapeEntry]:
    """Read the entries of a request's body.

    Raises:
        HttpError: There are too many entries, or the body is too large.
        InvalidEntry: A line is not an entry.
    """
    entries = parse_new_entries(await read_body(request))
    if len(entries) > MAX_APPEND_ENTRIES:
        raise HttpError(
            413, "too_large", f"a request takes at most {MAX_APPEND_ENTRIES} entries; send fewer"
        )
    return entries


async def read_model(request: Request, model: type[_Model]) -> _Model:
    """Read a request's body as a model; an empty body stands for an empty object.

    Raises:
        HttpError: The body is too large, is not JSON, or does not fit the model.
    """
    raw = await read_body(request)
    try:
        value = from_json(raw) if raw.strip() else {}
    except ValueError as error:
        raise HttpError(400, "invalid_json", f"the body is not JSON: {error}") from error
    try:
        return model.model_validate(value)
    except ValidationError as error:
        error_details = error.errors(include_input=False, include_url=False, include_context=False)[
            0
        ]
        where = ascii(".".join(map(str, error_details["loc"])))[1:-1] or "the body"
        raise HttpError(422, "invalid_request", f"{where}: {error_details['msg']}") from error
