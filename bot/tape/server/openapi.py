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
        "An entry to append: a line of NDJSON. An id that it has means nothing.",
        {"kind": _KIND, "payload": _OBJECT, "meta": _OBJECT},
        optional=("meta",),
    ),
    "Links": _record(
        "A page of the links of a tape's chain of digests; the next page begins at `next`.",
        {"links": _list("Link"), "next": _or_null(_ID)},
    ),
    "Link": _record(
        "What ties an entry to the one before it.",
        {
            "id": _ID,
            "more": {**_ID, "description": "How many entries of its append follow it."},
            "link": {
                **_TEXT,
                "description": "Base64: the value of the link before, a salt, the entry's digest, and of a "
                "tombstone the digest of what it replaced; 12 bytes each.",
            },
        },
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
        "How many entries were not yet as their tombstones.",
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
        "An entry that was found, with its neighbours.",
        {
            "tape": _TEXT,
            "score": {"type": "number"},
            "direct": {"type": "boolean", "description": "It has words of the question itself."},
            "entry": ref("Entry"),
            "before": _list("Entry"),
            "after": _list("Entry"),
        },
    ),
    "Hits": _record("What was found, best first.", {"hits": _list("Hit")}),
    "Statistics": _record(
        "The store's snapshot of itself, and the bound of a request's body.",
        {"store": _OBJECT, "most_bytes": {"type": "integer"}},
    ),
    "Health": _record("That all is well.", {"status": {"type": "string", "enum": ["ok"]}}),
    "Problem": {
        **_record(
            "Why it was refused.",
            {
                "error": {**_TEXT, "description": "For programs."},
                "detail": {**_TEXT, "description": "For people: what to do."},
                "version": {
                    **_ID,
                    "description": "Of a conflict: the version that the tape is at.",
                },
                "reasons": {"type": "array", "items": _TEXT, "description": "Of /health."},
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
    400: "The body cannot be taken as it is.",
    401: "There is no token, or it is not known.",
    403: "The token does not allow it, whether there is such a tape or not.",
    404: "There is no such tape, entry or anchor.",
    408: "The body came too slowly.",
    409: "The tape is at another version, or there is one of this name already.",
    413: "The body is too large.",
    422: "A parameter or a field is missing or wrong.",
    503: "The server is busy, or its store cannot be used now.",
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
            "description": "Where the next page begins, if there is one.",
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
        "description": "Entries as they come: `id` is the entry's id, `data` its line. Without end.",
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
        "description": "What stands from now on in the place of the entries of these ids; the kinds "
        "stay.",
        "required": True,
        "content": {NDJSON_MEDIA_TYPE: {"schema": schema, "example": _EXAMPLE_TOMBSTONE}},
    }


def json_body(schema: str, example: dict[str, Any], *, required: bool) -> dict[str, Any]:
    """Describe a JSON request body."""
    return {
        "required": required,
        "content": {"application/json": {"schema": ref(schema), "example": example}},
    }
