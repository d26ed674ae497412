"""Reduce a server's JSON Schema to what model providers accept, in bounded time and size. Pure.

Rule 1: the result has no references, a bounded depth and a bounded number of properties.
Rule 2: what is left out is not checked here; the server checks its arguments itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from bot.agent.foreign_text import one_line
from bot.core.patterns import LazyPattern

MOST_SCHEMA_CHARACTERS = 4_000
"""Largest schema that is shown to a model."""

_DEEPEST = 6
_MOST_NODES = 200
_MOST_VALUES = 50
_LONGEST_DESCRIPTION = 160
_LONGEST_VALUE = 80
_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean"})
_PROPERTY = LazyPattern(r"[A-Za-z0-9_.-]{1,64}")
_BOUNDS = ("minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength")


def reduced_schema(schema: object, redact: Callable[[str], str] = str) -> dict[str, Any]:
    """Return a schema of an object with the names, types and descriptions of its properties.

    Args:
        schema: The server's schema.
        redact: Removes secrets from descriptions.
    """
    made = _Reducer(schema, redact).reduce()
    if len(json.dumps(made, ensure_ascii=False)) <= MOST_SCHEMA_CHARACTERS:
        return made
    plain = {name: {"type": one.get("type", "string")} for name, one in made["properties"].items()}
    names = set(list(plain)[:_MOST_VALUES])
    return {
        "type": "object",
        "properties": {name: one for name, one in plain.items() if name in names},
        "required": [name for name in made.get("required", ()) if name in names],
    }


class _Reducer:
    """Walks one schema, with a budget."""

    def __init__(self, schema: object, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._root = schema if isinstance(schema, Mapping) else {}
        self._nodes = _MOST_NODES

    def reduce(self) -> dict[str, Any]:
        made = self._reduced(self._root, _DEEPEST)
        properties = made.get("properties", {})
        return {
            "type": "object",
            "properties": properties,
            "required": [name for name in made.get("required", ()) if name in properties],
        }

    def _reduced(self, given: object, depth: int) -> dict[str, Any]:
        schema = self._resolved(given)
        self._nodes -= 1
        if depth == 0 or self._nodes < 0:
            return {}
        made = self._leaf(schema)
        if (either := schema.get("anyOf") or schema.get("oneOf")) and isinstance(either, list):
            variants = [self._reduced(one, depth - 1) for one in either[:_MOST_VALUES]]
            kept = [one for one in variants if one]
            if len(kept) == 1:
                made = {**kept[0], **made}
            elif kept and "type" not in made:
                made["anyOf"] = kept
        if "properties" in schema or made.get("type") == "object":
            made |= self._object(schema, depth)
        if made.get("type") == "array":
            made["items"] = self._reduced(schema.get("items"), depth - 1) or {"type": "string"}
        return made

    def _leaf(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        kinds = schema.get("type")
        kinds = kinds if isinstance(kinds, list) else [kinds]
        kind = next((one for one in kinds if isinstance(one, str) and one in _TYPES), None)
        if kind is not None:
            made["type"] = kind
        if isinstance(told := schema.get("description"), str) and told.strip():
            made["description"] = self._redact(one_line(told, _LONGEST_DESCRIPTION))
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(values, list):
            texts = [one for one in values[:_MOST_VALUES] if isinstance(one, str)]
            # A value that had to be cut or cleaned is none that the server knows.
            if texts and texts == [one_line(str(one), _LONGEST_VALUE) for one in values]:
                made |= {"type": "string", "enum": texts}
        for name in _BOUNDS:
            value = schema.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                made[name] = value
        return made

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties: dict[str, Any] = {}
        given = schema.get("properties")
        for name, one in given.items() if isinstance(given, Mapping) else ():
            if self._nodes <= 0:
                break
            if isinstance(name, str) and _PROPERTY.fullmatch(name):
                properties[name] = self._reduced(one, depth - 1)
        required = schema.get("required")
        names = required if isinstance(required, list) else []
        return {
            "type": "object",
            "properties": properties,
            "required": [one for one in names[:_MOST_NODES] if one in properties],
        }

    def _resolved(self, given: object) -> Mapping[str, Any]:
        """Return a schema with its reference followed, within this schema only."""
        schema = given if isinstance(given, Mapping) else {}
        for _ in range(_DEEPEST):
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                break
            found: object = self._root
            for part in reference.removeprefix("#/").split("/")[:_DEEPEST]:
                found = found.get(part) if isinstance(found, Mapping) else None
            schema = found if isinstance(found, Mapping) else {}
        return schema
