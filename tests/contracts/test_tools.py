"""What every built-in tool promises: a name, a schema that providers take, an effect, and errors that a model can mend."""

from __future__ import annotations

import json

import pytest

from bot.agent.builtin_tools import builtin_tools
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

NAMES = (
    "memory.save",
    "memory.daily",
    "memory.refer",
    "memory.forget",
    "memory.show",
    "memory.clear",
    "memory.recall",
    "tape.handoff",
    "problem.note",
    "skill.read",
)


@pytest.fixture
async def host(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as running:
        yield running


async def test_these_are_the_built_in_tools_and_none_of_them_acts(host):
    tools = builtin_tools(host.services.agent)
    assert {tool.name for tool in tools} >= set(NAMES)
    assert {tool.effect for tool in tools} <= {"reads_own", "writes_own"}


async def test_a_tools_schema_is_plain_json_without_references(host):
    for tool in builtin_tools(host.services.agent):
        spec = tool.spec()
        assert spec.parameters["type"] == "object"
        assert "$ref" not in json.dumps(spec.parameters)
        assert spec.name.replace("_", "").isalnum()
        assert len(spec.description) <= 400


@pytest.mark.parametrize("name", NAMES)
async def test_arguments_that_do_not_fit_change_nothing_and_are_explained(tmp_path, name):
    odd = ("", "[]", "{", '{"odd": 1}', '"text"', "null")
    calls = [tool_call_reply((name.replace(".", "_"), one)) for one in odd]
    async with session_host(tmp_path, ScriptedModel([*calls, text_reply("ok")])) as host:
        assert await host.channel.ask("hello") == "ok" or host.channel.answers
        results = [entry for entry in await host.tape() if entry.kind == "tool_result"]
        assert len(results) == len(odd)
        for result in results:
            assert result.payload["status"] in ("ok", "error")
            assert result.payload["content"]
