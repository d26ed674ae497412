"""Describe request bodies, responses and schemas for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from bot.tape.entries import ENTRY_KINDS
from bot.tape.http_protocol import (
    MAX_JSON_INTEGER,
    NDJSON_MEDIA_TYPE,
    NEXT_PAGE_HEADER,
    SSE_MEDIA_TYPE,
)

_ID = {"type": "integer", "minimum": 0, "maximum": MAX_JSON_INTEGER}
_TEXT = {"type": "string"}
_OBJECT = {"type": "object"}
_KIND = {"type": "string", "enum": sorted(ENTRY_KINDS)}


def _record(
    description: str, properties: dict[str, Any], *, optional: tuple[str, ...] = ()
) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": [name for name in properties if name not in optional],
    }


def ref(name: str) -> dict[str, Any]:
    """Return a reference to a schema of ``SCHEMAS``."""
    return {"$ref": f"#/components/schemas/{name}"}


def _list(name: str) -> dict[str, Any]:
    return {"type": "array", "items": ref(name)}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


SCHEMAS: dict[str, Any] = {
    "Entry": _record(
        "An entry on a tape: a line of NDJSON.",
        {"id": _ID, "kind": _KIND, "payload": _OBJECT, "meta": _OBJECT},
    ),
    "NewEntry": _record(
        "An entry to append: a line of NDJSON. Its id is ignored.",
        {"kind": _KIND, "payload": _OBJECT, "meta": _OBJECT},
        optional=("meta",),
    ),
    "Segment": _record(
        "A sealed part of a tape.", {"name": _TEXT, "first_id": _ID, "last_id": _ID}
    ),
    "Segments": _record(
        "The sealed parts of a tape, oldest first.", {"segments": _list("Segment")}
    ),
    "Anchor": _record(
        "An anchor of a tape.",
        {
            "tape": _TEXT,
            "name": _TEXT,
            "at": {**_ID, "description": "Id of the anchor's own entry."},
            "entry_id": {**_ID, "description": "Id of the entry that it points at."},
            "state": _OBJECT,
            "ts": _TEXT,
        },
    ),
    "Anchors": _record(
        "A page of anchors, oldest first; the next page comes after `next`.",
        {"anchors": _list("Anchor"), "next": _or_null(_ID)},
    ),
    "Target": _record("The entry that an anchor points at.", {"entry_id": _ID}),
    "Erased": _record(
        "Number of entries that were not yet replaced by their tombstones.",
        {"erased": {"type": "integer", "minimum": 0}},
    ),
    "Tape": _record("A tape.", {"tape": _TEXT}),
    "Tapes": _record(
        "A page of names, sorted; the next page comes after `next`.",
        {"tapes": {"type": "array", "items": _TEXT}, "next": _or_null(_TEXT)},
    ),
    "Title": _record("A tape's title.", {"title": _or_null(_TEXT)}),
    "Version": _record("The id of a tape's last entry.", {"version": _ID}),
    "Hit": _record(
        "A found entry, with its neighbours.",
        {
            "tape": _TEXT,
            "score": {"type": "number"},
            "direct": {"type": "boolean", "description": "Whether it contains words of the query."},
            "entry": ref("Entry"),
            "before": _list("Entry"),
            "after": _list("Entry"),
        },
    ),
    "Hits": _record("Search results, best first.", {"hits": _list("Hit")}),
    "Statistics": _record(
        "The store's statistics, and the maximum size of a request body.",
        {"store": _OBJECT, "most_bytes": {"type": "integer"}},
    ),
    "Health": _record("The server is healthy.", {"status": {"type": "string", "enum": ["ok"]}}),
    "Problem": {
        **_record(
            "Why the request was refused.",
            {
                "error": {**_TEXT, "description": "For programs."},
                "detail": {**_TEXT, "description": "For people: what to do."},
                "version": {
                    **_ID,
                    "description": "For a conflict: the tape's current version.",
                },
                "reasons": {
                    "type": "array",
                    "items": _TEXT,
                    "description": "For /health: the reasons.",
                },
            },
            optional=("version", "reasons"),
        ),
    },
}

_EXAMPLE_ENTRY = (
    '{"id":2,"kind":"message","payload":{"role":"user","content":"hello"},'
    '"meta":{"ts":"2026-02-10T10:00:00.000+00:00"}}\n'
)
_EXAMPLE_TOMBSTONE = '{"id":2,"kind":"message","payload":{"role":"user","content":""},"meta":{}}\n'
_EXAMPLE_NEW = '{"kind":"message","payload":{"role":"user","content":"hello"}}\n'

_REFUSALS = {
    400: "The body is invalid.",
    401: "The token is missing or unknown.",
    403: "The token does not allow it, whether or not the tape exists.",
    404: "There is no such tape, entry or anchor.",
    408: "The body arrived too slowly.",
    409: "The tape has another version, or a tape of this name already exists.",
    413: "The body is too large.",
    422: "A parameter or a field is missing or wrong.",
    503: "The server is busy, or its store is not available.",
    507: "The storage refused the write; nothing was written.",
}
_CHALLENGE = {"WWW-Authenticate": {"schema": _TEXT}}
_ETAG = {"ETag": {"description": "The tape's version, in quotation marks.", "schema": _TEXT}}


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the descriptions of error responses by status."""
    found: dict[int | str, dict[str, Any]] = {}
    for status in sorted(statuses):
        found[status] = {
            "description": _REFUSALS[status],
            "content": {"application/json": {"schema": ref("Problem")}},
        }
        if status == 401:
            found[status]["headers"] = _CHALLENGE
    return found


def json_response(schema: str, *, version: bool = False) -> dict[str, Any]:
    """Describe a JSON response.

    Args:
        schema: Name of the schema.
        version: Whether the response has an ETag with the tape's version.
    """
    described = {
        "description": SCHEMAS[schema]["description"],
        "content": {"application/json": {"schema": ref(schema)}},
    }
    return {**described, "headers": _ETAG} if version else described


def entries_response(*, paged: bool) -> dict[str, Any]:
    """Describe an NDJSON response of entries."""
    following = {
        NEXT_PAGE_HEADER: {
            "description": "Start of the next page, if there is one.",
            "schema": _ID,
        }
    }
    return {
        "description": "Entries, a line each.",
        "headers": {**_ETAG, **following} if paged else _ETAG,
        "content": {
            NDJSON_MEDIA_TYPE: {
                "schema": {**_TEXT, "description": "Lines of `Entry`."},
                "example": _EXAMPLE_ENTRY,
            }
        },
    }


def events_response() -> dict[str, Any]:
    """Describe a response of server-sent events."""
    return {
        "description": "New entries as they arrive: `id` is the entry's id, `data` its line. The "
        "stream does not end.",
        "content": {
            SSE_MEDIA_TYPE: {"schema": _TEXT, "example": f"id: 2\ndata: {_EXAMPLE_ENTRY}\n"}
        },
    }


def entries_body(description: str, *, required: bool) -> dict[str, Any]:
    """Describe an NDJSON request body of new entries."""
    schema = {**_TEXT, "description": "Lines of `NewEntry`."}
    return {
        "description": description,
        "required": required,
        "content": {NDJSON_MEDIA_TYPE: {"schema": schema, "example": _EXAMPLE_NEW}},
    }


def tombstones_body() -> dict[str, Any]:
    """Describe an NDJSON request body of tombstones."""
    schema = {**_TEXT, "description": "Lines of `Entry`."}
    return {
        "description": "Tombstones that replace the entries with these ids; the kinds stay.",
        "required": True,
        "content": {NDJSON_MEDIA_TYPE: {"schema": schema, "example": _EXAMPLE_TOMBSTONE}},
    }


def json_body(schema: str, example: dict[str, Any], *, required: bool) -> dict[str, Any]:
    """Describe a JSON request body."""
    return {
        "required": required,
        "content": {"application/json": {"schema": ref(schema), "example": example}},
    }
