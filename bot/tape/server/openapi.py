"""Derive the OpenAPI document from the declared calls."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from inspect import cleandoc
from typing import Any

from pydantic import TypeAdapter

from bot.tape.http_protocol import FOLLOW, SSE_MEDIA_TYPE, Call, Problem

_ABOUT = """\
Append-only tapes, one for each conversation. Entries are read and written exactly.
Every call but /health takes a token (`Authorization: Bearer TOKEN`) of a scope: read, append or admin, each of which
includes those before it."""

_REFUSED = """\
400 or 422: what was asked is invalid. 401: there is no valid token. 403: the token does not allow it. 404: there is
no such tape, entry or anchor. 409: the tape has another version, or exists. 413: too much at once. 503: the server is
busy or out of order. 507: the storage refused the write, and nothing was written."""


def build_openapi(calls: Iterable[Call]) -> dict[str, Any]:
    """Return the OpenAPI document of the calls."""
    adapters = {("", "problem"): TypeAdapter[Any](Problem)}
    for call in calls:
        adapters[call.name, "asks"] = TypeAdapter(call.asks)
        adapters[call.name, "answers"] = TypeAdapter(str) if call is FOLLOW else call.answers
    schemas, shared = TypeAdapter.json_schemas(
        [(key, "validation", adapter) for key, adapter in adapters.items()],
        ref_template="#/components/schemas/{model}",
    )
    models = shared["$defs"]

    def content(key: tuple[str, str], kind: str = "application/json") -> dict[str, Any]:
        return {"content": {kind: {"schema": schemas[key, "validation"]}}}

    paths: dict[str, Any] = {}
    for call in calls:
        summary, _, description = cleandoc(call.method.__doc__ or "").partition("\n\n")
        kind = SSE_MEDIA_TYPE if call is FOLLOW else "application/json"
        operation: dict[str, Any] = {
            "operationId": call.name,
            "summary": summary,
            "description": description,
            "security": [{"token": [call.scope]}] if call.scope else [],
            "responses": {
                "200": {"description": "Done.", **content((call.name, "answers"), kind)},
                "default": {"description": _REFUSED, **content(("", "problem"))},
            },
        }
        if call.verb == "POST":
            operation["requestBody"] = {"required": True, **content((call.name, "asks"))}
        else:
            asked = models.pop(call.name)
            operation["parameters"] = [
                {"in": "query", "name": name, "required": "default" not in schema, "schema": schema}
                for name, schema in asked.get("properties", {}).items()
            ]
        paths.setdefault(call.path, {})[call.verb.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tapebot tape server",
            "version": version("tapebot"),
            "description": _ABOUT,
        },
        "paths": paths,
        "components": {
            "schemas": models,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
