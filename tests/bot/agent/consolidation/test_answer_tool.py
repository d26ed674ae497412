"""What a model is told of the answer that it must give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bot.agent.consolidation.answer_tool import answer_schema
from bot.agent.consolidation.claim_judge import JUDGE_TOOL
from bot.agent.consolidation.prompts import SAVE_MEMORY_TOOL


@pytest.mark.parametrize("tool", [SAVE_MEMORY_TOOL, JUDGE_TOOL], ids=lambda one: one.name)
def test_an_answer_is_described_without_references_and_every_field_of_it_is_required(tool):
    objects = list(_objects(answer_schema(tool.answer)))
    assert len(objects) > 1
    for one in objects:
        assert set(one) == {"type", "properties", "required", "additionalProperties"}
        assert one["required"] == list(one["properties"])
        assert one["additionalProperties"] is False


def test_a_field_that_may_be_left_out_may_be_null():
    operation = answer_schema(SAVE_MEMORY_TOOL.answer)["properties"]["operations"]["items"]
    told = {name: one["type"] for name, one in operation["properties"].items()}
    assert told["fact"] == ["integer", "null"]
    assert told["text"] == ["string", "null"]
    assert told["op"] == "string"


def _objects(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the objects in a schema; each part names its type, so none is a reference."""
    if schema["type"] == "object":
        yield schema
        for one in schema["properties"].values():
            yield from _objects(one)
    elif schema["type"] == "array":
        yield from _objects(schema["items"])
